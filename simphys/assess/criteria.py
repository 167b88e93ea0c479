"""Criteria of a fit, and the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["passed", "doubtful", "failed"]
ORDER: tuple[Verdict, ...] = ("passed", "doubtful", "failed")


@dataclass(frozen=True)
class Criterion:
    """One condition of a fit that one can believe."""

    name: str
    value: float
    """Number that was judged; NaN where there is none."""
    verdict: Verdict
    found: str
    """Finding in words."""
    remedy: str = ""
    """Advice; empty if it passed."""

    def __str__(self) -> str:
        return f"{self.verdict}: {self.name}: {self.found}. {self.remedy}".rstrip()


def worst(criteria: Iterable[Criterion]) -> Verdict:
    """Return the worst verdict; without criteria, nothing is wrong."""
    return ORDER[max((ORDER.index(each.verdict) for each in criteria), default=0)]


def grade(value: float, *, doubtful: float, failed: float) -> Verdict:
    """Grade a number, of which less is better, by two limits; NaN, which says nothing, fails."""
    return "passed" if value <= doubtful else "doubtful" if value <= failed else "failed"
