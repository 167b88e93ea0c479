"""Results of a fit in the own units of its loss terms: how far the motion ends from what was wanted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys.autograd import no_grad
from simphys.experiment import misfits
from simphys.experiment.scene import Scene
from simphys.record import RunRecorder
from simphys.rollout import Trajectory
from simphys.scenefile.body_names import name_bodies
from simphys.scenefile.section import Range

from .run_files import find_unit

GROUP = "achieved"
FEW = 3
"""Largest number of components whose values are given besides their distance from the target."""


@dataclass(frozen=True)
class Achievement:
    """Part of the motion that a loss term is about, and its distance from the target before and after the fit."""

    label: str
    unit: str
    start: float
    """Root mean square distance before the fit."""
    distance: float
    """Root mean square distance after it."""
    value: tuple[float, ...] = ()
    """The part itself after the fit, if it is few numbers."""

    def __str__(self) -> str:
        values = ", ".join([f"{each:.4g}" for each in self.value])
        where = f"{f'({values})' if len(self.value) > 1 else values} {self.unit}".rstrip() + ", " if values else ""
        before, after = (with_prefix(each, self.unit) for each in (self.start, self.distance))
        return f"{self.label}: {where}{after} from the target; before the fit {before}"


def with_prefix(value: float, unit: str) -> str:
    """Format a number with its unit; short lengths in mm or µm: '3.6 mm'."""
    if unit == "m" and 0 < abs(value) < 0.01:
        value, unit = (1e3 * value, "mm") if abs(value) >= 1e-5 else (1e6 * value, "µm")
    return f"{value:.3g} {unit}".rstrip()


def find_achievements(start: Scene, fitted: Scene) -> tuple[Achievement, ...]:
    """Compare the motions before and after a fit with the targets of the loss terms. Errors: BlowUp."""
    if fitted.experiments:
        found_of_each = []
        for before_it, part in zip(start.experiments, fitted.experiments, strict=True):
            own = find_achievements(before_it, part)
            found_of_each += [replace(each, label=f"{part.name}: {each.label}") for each in own]
        return tuple(found_of_each)
    if all(term.kind == "regularization" for term in fitted.config.loss.terms):
        return ()
    before, after = (_distances(scene) for scene in (start, fitted))
    found = []
    for place, (distance, value) in after.items():
        term = fitted.config.loss.terms[place]
        unit = "kg/m^2" if term.kind == "final_density" and len(term.cells) == 2 else "kg/m^3"
        if term.kind != "final_density":
            unit = find_unit(fitted, term.field)
        found.append(Achievement(_label(fitted, term), unit, before[place][0], distance, value))
    return tuple(found)


def write_achievements(recorder: RunRecorder, found: tuple[Achievement, ...]) -> None:
    """Record the results, a row for each loss term."""
    if found:
        recorder.write(
            GROUP,
            text=[str(each) for each in found],
            label=[each.label for each in found],
            unit=[each.unit for each in found],
            start=[each.start for each in found],
            distance=[each.distance for each in found],
        )


def _distances(scene: Scene) -> dict[int, tuple[float, tuple[float, ...]]]:
    """Compute, by the number of each term, its distance from the target, and its part of the motion if small."""
    found = {}
    with no_grad():
        trajectory = scene.rollout(only_seen=True)
        for place, term in enumerate(scene.config.loss.terms):
            if term.kind == "regularization" or not term.weight:
                continue
            squares = _squares(scene, trajectory, place)
            if squares is None:
                continue
            scale = 2 * term.weight * (scene.members or 1)
            if term.kind == "running_sum":
                scale *= scene.dt * scene.steps
            found[place] = float(np.sqrt(squares / scale)), _value(scene, trajectory, term)
    return found


def _squares(scene: Scene, trajectory: Trajectory, place: int) -> float | None:
    """Sum the squares of a term's residuals; None if a sum along time is not known apart from others."""
    term = scene.config.loss.terms[place]
    if term.kind != "running_sum":
        return _sum(misfits.term_at_end(scene, trajectory, place))
    if trajectory.running is None:
        return _sum(misfits.running_residuals(scene, trajectory.states, term, slice(1, None)))
    return 2 * float(trajectory.running) if len(misfits.terms_of(scene, "running_sum")) == 1 else None


def _sum(residuals: Any) -> float:
    return float(np.sum(np.asarray(residuals.data, np.float64) ** 2))


def _value(scene: Scene, trajectory: Trajectory, term: Any) -> tuple[float, ...]:
    if term.kind not in ("final_state", "final_mean") or scene.members is not None:
        return ()
    seen = misfits.part_of_final(scene, trajectory, term)
    if term.kind == "final_mean":
        seen = seen.mean(axis=0, keepdims=True)
    return tuple(seen.ravel().tolist()) if seen.size <= FEW else ()


def _label(scene: Scene, term: Any) -> str:
    """Name what a term is about: 'position x of trunk at the end'."""
    when = "along time" if term.kind == "running_sum" else "at the end"
    if term.kind == "final_density":
        return f"density {when}"
    vectors = scene.bodies is not None and term.field in ("position", "velocity")
    field = term.field.replace("_", " ") + (f" {'xyz'[term.axis]}" if term.axis is not None and vectors else "")
    chosen = [] if term.nodes is None or isinstance(term.nodes, Range) else list(term.nodes)
    if len(chosen) == 1 and (vectors or term.field == "orientation"):
        names = name_bodies(scene.config)
        field = f"{field} of {names.of(chosen[0])}"
    return f"{'mean ' if term.kind == 'final_mean' else ''}{field} {when}"
