"""Random steps as a target of `python -m benchmarks.fuzz`: a case is a seed of one family."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from simphys.autograd import runtime
from simphys.autograd.errors import InputError

FAMILIES = ("bodies", "elements", "grids", "particles", "layers", "sequences", "all")
"""Families of patterns; of "all", sub-steps of any of them meet in a step."""
SEEDS = 10**8


class Different(Exception):
    """A step that is computed in another way has other values, or is refused."""


class StepTarget:
    """Random steps of a family of patterns."""

    def __init__(self, family: str) -> None:
        from . import checks, draws

        runtime.init(precision="f64")
        self._family = draws.TURNS.index(family)
        self._draw, self._check = draws.draw, checks.check

    def make_case(self, chance: random.Random) -> tuple[str, Callable[[], Any]]:
        seed = chance.randrange(SEEDS) * len(FAMILIES) + self._family
        return f"benchmarks.fuzz.steps.checks.check({seed})", lambda: self._use(seed)

    def _use(self, seed: int) -> None:
        try:
            found = self._check(seed)
        except InputError as error:  # right for what a user gives, but not here
            raise Different(f"refused: {error}") from error
        if found:
            raise Different(f"{found}; calls {[call[0] for call in self._draw(seed).model.calls]}")
