"""Criteria that are judged at a fit, where another one says that this fit failed.

A fit that does not describe its recording predicts as badly as it fits, may run to bounds that exclude nothing, and
may end at values about which nothing follows. There a criterion says so, in place of advice that holds for a good fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .bounds import WIDEN
from .criteria import Criterion

AT_VALUES = {"determined unknowns", "dissipation", "alias", "samples"}
"""Criteria whose advice follows from the values that were found."""
CAUSES = ("time step", "sign of friction")
"""Criteria about what may be the cause of a misfit itself."""
ABOUT_WIDTHS = {"recovery", "intervals", "posterior"}
"""Criteria about errors, which mean nothing about values that do not describe the recording."""
ABOUT_SAMPLES = {"misfit", "white residuals", *CAUSES, *AT_VALUES}
"""Criteria about samples, or about values that these tell, which mean nothing where nothing was measured."""
PLAUSIBLE = "heed this only where the values are plausible all the same."


def heed_failure(criteria: Sequence[Criterion]) -> list[Criterion]:
    """Reword criteria that build on a fit whose search, misfit or recording failed, or to which another is better."""
    failed = {each.name for each in criteria if each.verdict == "failed"}
    if not failed & {"search", "misfit", "starts tried", "recording"}:
        return list(criteria)
    doubted = [each.name for each in criteria if each.name in CAUSES and each.verdict != "passed"]
    first = f"The {doubted[0]} may be the cause: mend it first." if doubted else ""
    return [_reword(each, failed, first) for each in criteria]


def _reword(each: Criterion, failed: set[str], first: str) -> Criterion:
    """Reword a criterion; `first` says what is to be mended before a misfit, if there is such a thing."""
    if "recording" in failed and each.name in ABOUT_SAMPLES and each.verdict != "passed":
        return replace(each, remedy="See recording: nothing was measured by which this could be judged.")
    if first and each.name == "misfit" and each.verdict == "failed" and first not in each.remedy:
        return replace(each, remedy=f"{first} {each.remedy}")
    why = next(name for name in ("starts tried", "misfit", "search", "recording") if name in failed)
    if each.name == "holdout" and "misfit" in failed:
        found = f"{each.found.partition(', where')[0]}, by a fit that misses those that it has seen"
        return replace(each, verdict="failed", found=found, remedy="See misfit: such a fit predicts nothing.")
    if each.name in ABOUT_WIDTHS and why != "search":
        remedy = f"See {why}: errors mean nothing about values that failed."
        return replace(each, verdict="doubtful" if each.verdict == "passed" else each.verdict, remedy=remedy)
    if each.verdict == "passed":
        return each
    if each.name == "bounds" and why == "starts tried":
        return replace(each, remedy="Keep these bounds: a better optimum lies within them (see starts tried).")
    if PLAUSIBLE in each.remedy:
        return each
    if each.name == "bounds" and each.remedy == WIDEN:
        return replace(each, remedy=f"A fit that failed (see {why}) runs to bounds, too: {PLAUSIBLE} {WIDEN}")
    if each.name in AT_VALUES:
        return replace(each, remedy=f"The fit failed (see {why}): {PLAUSIBLE} {each.remedy}")
    return each
