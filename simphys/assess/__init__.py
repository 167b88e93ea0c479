"""Judgement of a fit: criteria that it must meet before one believes it, each with a number, a verdict and a remedy."""

from simphys.assess.criteria import Criterion, Verdict, worst
from simphys.assess.failure import heed_failure
from simphys.assess.noise import estimate_noise
from simphys.assess.quality import judge, judge_search
from simphys.assess.uncertainty import Uncertainty, estimate_uncertainty

__all__ = [
    "Criterion",
    "Uncertainty",
    "Verdict",
    "estimate_noise",
    "estimate_uncertainty",
    "heed_failure",
    "judge",
    "judge_search",
    "worst",
]
