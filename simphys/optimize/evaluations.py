"""Evaluations of an objective, recorded as they are made and replayed from the log when a run is resumed.

Every optimizer here is deterministic: the same results lead to the same next evaluations. So a resumed run simply
starts again and takes the recorded results in order as long as they last, whatever the method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from simphys.autograd.errors import InputError

Row = Mapping[str, np.ndarray]


class Objective(Protocol):
    """Function to minimize, in optimizer coordinates theta [p]: scaled to order one, perhaps logarithmic.

    Any evaluation may give NaN or infinity, or raise `FailedTrial`, an ArithmeticError or a LinAlgError. It
    then counts as a failed trial.
    """

    start: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def labels(self) -> list[str]:
        """Name of each element of theta."""
        ...

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Compute the loss and its gradient [p]."""
        ...

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Compute the whitened residuals [m]: half the sum of their squares is the loss."""
        ...

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        """Compute the derivative of the residuals [m, p]."""
        ...

    def until(self, fraction: float) -> Objective:
        """Restrict the objective to the first fraction of its horizon."""
        ...


class Log(Protocol):
    """Storage of evaluations: one table for each kind, one row for each evaluation."""

    def rows(self, kind: str) -> Sequence[Row]:
        """Rows of an earlier run, oldest first."""
        ...

    def append(self, kind: str, **arrays: np.ndarray) -> None:
        """Append one row; all rows of a kind have the same names and shapes."""
        ...


class MemoryLog:
    """Log in memory, which lives as long as the process."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, np.ndarray]]] = {}

    def rows(self, kind: str) -> Sequence[Row]:
        return self.tables.get(kind, [])

    def append(self, kind: str, **arrays: np.ndarray) -> None:
        self.tables.setdefault(kind, []).append({name: np.array(array) for name, array in arrays.items()})


class Evaluations:
    """Evaluations of a run: taken from the log as long as it has rows, then computed and logged."""

    def __init__(self, log: Log | None = None) -> None:
        self.log = log
        self.count = 0
        self.failed = 0
        self._recorded: dict[str, list[Row]] = {}
        self._next_row: dict[str, int] = {}

    def evaluate(self, kind: str, theta: np.ndarray, compute: Callable[[np.ndarray], dict[str, np.ndarray]]) -> Row:
        """Return the row of an evaluation of this kind at theta.

        Errors: InputError if the log holds a different theta at this position.
        """
        row = self._look_up(kind, theta)
        if row is None:
            row = {"theta": theta.copy(), **compute(theta.copy())}
            if self.log is not None:
                self.log.append(kind, **row)
        self._next_row[kind] += 1
        self.count += 1
        return row

    def _look_up(self, kind: str, theta: np.ndarray) -> Row | None:
        if kind not in self._recorded:  # read the log before this run appends to it
            self._recorded[kind] = [] if self.log is None else list(self.log.rows(kind))
            self._next_row[kind] = 0
        place = self._next_row[kind]
        if place >= len(self._recorded[kind]):
            return None
        row = self._recorded[kind][place]
        _require_shapes(row, kind, place, theta.size)
        recorded = np.asarray(row["theta"], dtype=np.float64)
        if recorded.tobytes() != theta.tobytes():
            raise InputError(
                "resume",
                f"this run must repeat the evaluations of the interrupted run ({kind}, row {place})",
                f"theta = {format_theta(theta)} where {format_theta(recorded)} was recorded",
                "The scene, the observations, the optimizer's settings or a version has changed since then: undo the "
                "change, or start a new run in another folder.",
            )
        return row


def _require_shapes(row: Row, kind: str, place: int, count: int) -> None:
    """Raise InputError unless a recorded evaluation has the arrays of its kind, for `count` unknowns."""
    shapes = {name: np.shape(array) for name, array in row.items()}
    wanted = {"theta": (count,), "gradient": (count,), "loss": ()}
    names = {"value_and_gradient": ("loss", "gradient"), "residuals": ("residual",), "jacobian": ("jacobian",)}
    missing = {"theta", *names.get(kind.rpartition("/")[2], ())} - shapes.keys()
    wrong = [name for name, shape in wanted.items() if shapes.get(name, shape) != shape]
    wrong += ["residual"] if len(shapes.get("residual", (0,))) != 1 else []
    wrong += ["jacobian"] if shapes.get("jacobian", (count,))[-1:] != (count,) else []
    wrong += [name for name, array in row.items() if np.asarray(array).dtype.kind not in "biuf"]
    if missing or wrong:
        raise InputError(
            "resume",
            f"the recorded evaluations must be those of this scene ({kind}, row {place})",
            f"no {', '.join(sorted(missing))}" if missing else f"{wrong[0]} of shape {list(shapes[wrong[0]])}",
            "Restore the run from a copy, or start a new one: --overwrite, or another output.folder.",
        )


def format_theta(theta: np.ndarray) -> str:
    """Format theta for an error message: all numbers if there are few, else the first ones."""
    values = str(theta[:8].tolist())
    return values if theta.size <= 8 else f"{values[:-1]}, ...] ({theta.size} numbers)"
