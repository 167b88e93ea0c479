"""Recorded unknown that is a field on a grid: the start and the result of its search, and its gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.plot import style
from simphys.plot.components import FEW
from simphys.plot.fields.grids import Quantity, make_quantity, read_grid, vector_kind
from simphys.record import Recording
from simphys.scenefile import UnknownSection, flat_entries
from simphys.simulator.grids import Grid

NEEDS = ("unknowns/label", "unknowns/start", "unknowns/value", "iterations/theta", "grid")
DEVIATION, PRIOR = "laplace/standard_deviation", "laplace/prior"
REMEDY = "Only `simphys optimize` with an unknown field on a grid records it."


@dataclass(frozen=True)
class UnknownField:
    """Unknown field, in the shape of the parameter; NaN in entries without a value.

    errors: relative errors of start and value, |value - truth| / |truth|, if the truth is known.
    gradients: gradient of the loss by title, at the start and at the end.
    deviation: standard deviation of the value, if it is recorded and the field one of numbers; prior: its mean before
    the data.
    """

    label: str
    quantity: Quantity
    gradient: Quantity
    grid: Grid
    start: np.ndarray
    value: np.ndarray
    truth: np.ndarray | None
    errors: tuple[float, float] | None
    gradients: dict[str, np.ndarray]
    deviation: np.ndarray | None
    prior: float | None


def list_unknown_fields(recording: Recording) -> list[str]:
    """List the unknowns of a run that are fields on its grid."""
    if any(path not in recording for path in NEEDS):
        return []
    grid, sections = read_grid(recording, ""), _sections(recording)
    return [label for label, section in sections.items() if _is_field(recording, grid, label, section)]


def read_unknown_field(recording: Recording, label: str, picture: str) -> UnknownField:
    """Read an unknown field. Errors: NotRecorded if the run has no such field."""
    style.require(recording, picture, NEEDS, REMEDY)
    if label not in list_unknown_fields(recording):
        constraint = f"draws unknown fields: {', '.join(list_unknown_fields(recording)) or 'none'}"
        raise style.NotRecorded(f"picture {picture!r}", constraint, label or "none", "Name one of these.")
    grid, unknown = read_grid(recording, picture), _unknown(_sections(recording)[label])
    base = _base(recording, grid, unknown.parameter)
    entries = flat_entries(unknown, base.shape)
    where = _where(recording, label)
    start, value = (recording[f"unknowns/{name}"][where] for name in ("start", "value"))

    def whole(numbers: np.ndarray, around: np.ndarray) -> np.ndarray:
        made = np.array(around, float)
        made.reshape(-1)[entries] = numbers
        return made

    known = f"truth/{label}"
    truth = recording[f"{known}/truth"] if known in recording else None
    kind = "number" if base.ndim == len(grid.cells) else vector_kind(grid)
    has_map = kind == "number" and DEVIATION in recording
    unit = unknown.unit or grid.fields[unknown.parameter]
    name = f"∂loss/∂{unknown.parameter}" + (", smoothed" if unknown.smooth else "")
    scale = unknown.scale or np.where(start == 0, 1.0, np.abs(start))
    gradients = {}
    for title, row, at in zip(*_ends(recording), (start, value), strict=True):
        gradient = _gradient(recording, row)
        if gradient is not None:
            natural = gradient[where] / (at if unknown.transform == "log" else scale)
            gradients[title] = whole(natural, np.zeros_like(base) if kind != "number" else np.full(base.shape, np.nan))
    return UnknownField(
        label=label,
        quantity=make_quantity(grid, unknown.parameter, "", kind, unit=unit),
        gradient=Quantity("", name if kind == "number" else f"|{name}|", style.per_unit(unit), _gradient_kind(kind)),
        grid=grid,
        start=whole(start, base),
        value=whole(value, base),
        truth=None if truth is None else whole(truth, base),
        errors=None if truth is None else (_error(start, truth), _error(value, truth)),
        gradients=gradients,
        deviation=whole(recording[DEVIATION][where], np.full(base.shape, np.nan)) if has_map else None,
        prior=float(recording[PRIOR][where].mean()) if has_map else None,
    )


def _gradient_kind(kind: str) -> str:
    return "number" if kind == "number" else "length"


def _error(value: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(value - truth) / (np.linalg.norm(truth) or np.nan))


def _sections(recording: Recording) -> dict[str, Any]:
    found: Any = recording.scene.get("unknowns", {})
    return dict(found)


def _unknown(section: dict[str, Any]) -> UnknownSection:
    return UnknownSection.model_validate(section)


def _is_field(recording: Recording, grid: Grid, label: str, section: dict[str, Any]) -> bool:
    count = _where(recording, label).size
    if section["parameter"] not in grid.fields or section.get("tied") or count <= FEW:
        return False
    base = _base(recording, grid, section["parameter"])
    unknown = _unknown(section)
    return base.shape[-len(grid.cells) :] >= grid.cells and flat_entries(unknown, base.shape).size == count


def _where(recording: Recording, label: str) -> np.ndarray:
    """Indices of the entries of a label among all unknown numbers."""
    return np.flatnonzero([each == label or each.startswith(f"{label}[") for each in recording["unknowns/label"]])


def _base(recording: Recording, grid: Grid, parameter: str) -> np.ndarray:
    """Read the parameter or the initial state after the fit, for the entries that are not unknown."""
    if f"parameters/{parameter}" in recording:
        return recording[f"parameters/{parameter}"]
    path = f"{style.FIELDS}/{parameter}/value"
    return recording.row(path, 0) if path in recording else np.full(grid.cells, np.nan)


def _ends(recording: Recording) -> tuple[list[str], list[int]]:
    """Titles and iteration numbers of the search's start, and of its best point in the last stage."""
    stage, loss = recording["iterations/stage"], recording["iterations/loss"]
    last = np.flatnonzero(stage == stage[-1])
    rows = [0, int(last[np.argmin(loss[last])])]
    names = ["at the start", "at the end"]
    if stage[-1] > stage[0]:
        names = [f"{name},\n{_stage(recording, row)}" for name, row in zip(names, rows, strict=True)]
    return names, rows


def _stage(recording: Recording, row: int) -> str:
    if "iterations/lowpass" in recording:
        cutoff = recording["iterations/lowpass"][row]
        return "all frequencies" if np.isinf(cutoff) else f"up to {cutoff:g} {recording.units.frequency}"
    return f"{style.fraction(recording['iterations/horizon'][row])} horizon"


def _gradient(recording: Recording, iteration: int) -> np.ndarray | None:
    """Read the gradient of the loss in the optimizer's coordinates at an iteration; None if it is not recorded."""
    path = "iterations/gradient"
    return recording.row(path, iteration) if path in recording else None
