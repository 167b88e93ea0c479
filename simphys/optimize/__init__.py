"""Parameter optimization: minimize an objective, resume an interrupted search, see which unknowns the data fix."""

from simphys.optimize.correlation import Whiteness, correlated_covariance, whiteness
from simphys.optimize.evaluations import Log, MemoryLog, Objective
from simphys.optimize.identifiability import (
    DETERMINE,
    RankReport,
    StandardErrors,
    active_bounds,
    correlations,
    mark_unknown,
    rank_report,
    standard_errors,
)
from simphys.optimize.minimization import METHODS, Horizon, minimize
from simphys.optimize.randomized import RandomizedSmoothing
from simphys.optimize.result import FailedTrial, Interrupted, IterationRecord, Mixture, Result
from simphys.optimize.robust import RobustLoss, m_estimate_sigma

__all__ = [
    "DETERMINE",
    "METHODS",
    "FailedTrial",
    "Horizon",
    "Interrupted",
    "IterationRecord",
    "Log",
    "MemoryLog",
    "Mixture",
    "Objective",
    "RandomizedSmoothing",
    "RankReport",
    "Result",
    "RobustLoss",
    "StandardErrors",
    "Whiteness",
    "active_bounds",
    "correlated_covariance",
    "correlations",
    "m_estimate_sigma",
    "mark_unknown",
    "minimize",
    "rank_report",
    "standard_errors",
    "whiteness",
]
