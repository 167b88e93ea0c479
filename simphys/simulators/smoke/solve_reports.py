"""The reports of all solves of an engine, member by member and direction by direction, and what is warned of them."""

from __future__ import annotations

from typing import Literal

from .model import Smoke
from .solve_report import LARGEST_ERROR, SolveReport

Direction = Literal["forward", "backward", "tangent"]


class SolveReports:
    """Which report a solve goes to. A step that is computed again, as checkpoints want it, does not count again."""

    def __init__(self, model: Smoke) -> None:
        self._model = model
        self._iterates = model.projection in ("conjugate_gradients", "multigrid")
        self._of: dict[tuple[Direction, int], SolveReport] = {}
        self._seen: dict[tuple[Direction, int], int] = {}
        self._warned: set[tuple[Direction, int]] = set()

    def at(self, direction: Direction, member: int, step: int) -> SolveReport | None:
        """The report for the solve of a step; None where there is nothing to report."""
        key = direction, member
        if not self._iterates or (direction == "forward" and step <= self._seen.get(key, -1)):
            return None
        self._seen[key] = step
        return self._of.setdefault(key, SolveReport(direction)).at(step)

    def all(self, direction: Direction) -> list[SolveReport]:
        """Of each member, as far as there are any."""
        return [report for (of, _), report in sorted(self._of.items()) if of == direction]

    def warn(self, direction: Direction) -> None:
        """Warn, once for each member, where results are not to be trusted."""
        for key, report in self._of.items():
            if key[0] == direction and key not in self._warned and report.error > LARGEST_ERROR:
                self._warned.add(key)
                report.warn(self._model)
