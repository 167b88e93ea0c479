"""Parameter optimization: minimize an objective, resume an interrupted search, see which unknowns the data fix."""

from simphys.optimize.evaluations import Log, MemoryLog, Objective
from simphys.optimize.identifiability import RankReport, StandardErrors, active_bounds, rank_report, standard_errors
from simphys.optimize.minimization import METHODS, minimize
from simphys.optimize.randomized import RandomizedSmoothing
from simphys.optimize.result import FailedTrial, Interrupted, IterationRecord, Mixture, Result

__all__ = [
    "METHODS",
    "FailedTrial",
    "Interrupted",
    "IterationRecord",
    "Log",
    "MemoryLog",
    "Mixture",
    "Objective",
    "RandomizedSmoothing",
    "RankReport",
    "Result",
    "StandardErrors",
    "active_bounds",
    "minimize",
    "rank_report",
    "standard_errors",
]
