"""Evaluations that are recorded as they are made and, on resume, taken from the record.

Every optimizer here is deterministic: the same answers lead to the same questions. So a resumed run is the
run itself, started anew, with the recorded answers given in order as long as they last, whatever the method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from simphys.autograd.errors import InputError

Row = Mapping[str, np.ndarray]


class Objective(Protocol):
    """What is minimized, in optimizer coordinates theta [p]: scaled to order one, perhaps logarithmic.

    Any evaluation may give NaN or infinity, or raise `BlowUp`, an ArithmeticError or a LinAlgError: that trial failed.
    """

    labels: list[str]
    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The loss and its gradient [p]."""
        ...

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """[m] whitened residuals: half the sum of their squares is the loss."""
        ...

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        """[m, p] derivative of the residuals."""
        ...

    def until(self, fraction: float) -> Objective:
        """The same objective on the first fraction of its horizon."""
        ...


class Log(Protocol):
    """Where evaluations are kept: tables named by a kind, one row an evaluation."""

    def rows(self, kind: str) -> Sequence[Row]:
        """The rows of an earlier run, oldest first."""
        ...

    def append(self, kind: str, **arrays: np.ndarray) -> None:
        """Keep one row; rows of a kind have the same names and shapes."""
        ...


class MemoryLog:
    """A log that lives as long as the process."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, np.ndarray]]] = {}

    def rows(self, kind: str) -> Sequence[Row]:
        return self.tables.get(kind, [])

    def append(self, kind: str, **arrays: np.ndarray) -> None:
        self.tables.setdefault(kind, []).append({name: np.array(array) for name, array in arrays.items()})


class Evaluations:
    """Answers an evaluation from the log while it has one for it, and otherwise computes and logs it."""

    def __init__(self, log: Log | None = None) -> None:
        self.log = log
        self.count = 0
        self.failed = 0
        self._recorded: dict[str, list[Row]] = {}
        self._answered: dict[str, int] = {}

    def ask(self, kind: str, theta: np.ndarray, compute: Callable[[np.ndarray], dict[str, np.ndarray]]) -> Row:
        """The row of an evaluation of this kind at theta.

        Raises InputError where the log holds a different theta at this place.
        """
        row = self._recall(kind, theta)
        if row is None:
            row = {"theta": theta.copy(), **compute(theta.copy())}
            if self.log is not None:
                self.log.append(kind, **row)
        self._answered[kind] += 1
        self.count += 1
        return row

    def _recall(self, kind: str, theta: np.ndarray) -> Row | None:
        if kind not in self._recorded:  # before anything of this run is appended to it
            self._recorded[kind] = [] if self.log is None else list(self.log.rows(kind))
            self._answered[kind] = 0
        place = self._answered[kind]
        if place >= len(self._recorded[kind]):
            return None
        row = self._recorded[kind][place]
        recorded = np.asarray(row["theta"], dtype=np.float64)
        if recorded.tobytes() != theta.tobytes():
            raise InputError(
                "resume",
                f"the evaluations of the interrupted run must be those that this run asks for ({kind}, row {place})",
                f"theta = {shown(theta)} where {shown(recorded)} was recorded",
                "The scene, the observations, the optimizer's settings or a version changed since: undo that, "
                "or start a new run in another folder.",
            )
        return row


def shown(theta: np.ndarray) -> str:
    """theta in an error message: all of a few numbers, the first of many."""
    values = str(theta[:8].tolist())
    return values if theta.size <= 8 else f"{values[:-1]}, ...] ({theta.size} numbers)"
