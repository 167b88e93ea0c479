"""Motion as a function of its values: its final state, and derivatives of that computed in three ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import simphys
from simphys.autograd import grad, no_grad, tensor
from simphys.autograd.proof.finite_difference import derivative
from simphys.autograd.proof.gradcheck import EPS
from simphys.rollout import rollout

from .cases import Case, Closed, Place, Values

SCENES = Path(__file__).parents[2] / "scenes" / "rigid"
TINY = 1e-30


@dataclass(frozen=True)
class Found:
    """Results with one time step."""

    dt: float
    value: float
    closed: float
    adjoint: float
    difference: float
    slope: float
    """Derivative of the closed form."""

    @property
    def value_error(self) -> float:
        """Relative error of the simulation."""
        return abs(self.value - self.closed) / abs(self.closed)

    @property
    def error(self) -> float:
        """Error of the adjoint compared with the closed form, relative if that is not 0."""
        return abs(self.adjoint - self.slope) / _size(self.slope)

    @property
    def disagreement(self) -> float:
        """Difference of the adjoint and finite differences, relative if the former is not 0."""
        return abs(self.adjoint - self.difference) / _size(self.adjoint)


def _size(number: float) -> float:
    return abs(number) if abs(number) > 1e-12 else 1.0


@dataclass(frozen=True)
class Row:
    """Quantity and its derivative with respect to a value, with steps of dt and, if inexact, of dt/2."""

    what: str
    law: str
    by: str
    whole: Found
    half: Found | None = None


class Motion:
    """Model with its initial state, as a function of their values."""

    def __init__(self, model: Any, params: Any, state: Any, steps: int) -> None:
        self.model, self.steps = model, steps
        self.kinds = type(params), type(state)
        self.values = {name: array.copy() for name, array in (params.arrays() | state.arrays()).items()}

    def changed(self, given: Mapping[Place, float]) -> dict[str, Any]:
        """Replace some of the values."""
        values = {name: np.array(array, float) for name, array in self.values.items()}
        for (name, index), number in given.items():
            values[name][index] = number
        return values

    def records(self, values: Values) -> tuple[Any, Any]:
        """Make parameters and initial state, whose tensors require a gradient."""
        leaves = {name: tensor(array, requires_grad=True) for name, array in values.items()}
        params, state = [kind(**{name: leaves[name] for name in kind.names()}) for kind in self.kinds]
        return params, state

    def end(self, values: Values, end: Place) -> float:
        """Compute a quantity of the final state."""
        with no_grad():
            final = rollout(self.model, *self.records(values), steps=self.steps, keep="final").final
        return float(getattr(final, end[0]).data[end[1]])

    def gradient(self, values: Values, end: Place) -> tuple[float, dict[str, Any]]:
        """Compute the quantity, and its derivatives with respect to all values."""
        params, state = self.records(values)
        result = getattr(rollout(self.model, params, state, steps=self.steps).final, end[0])[end[1]]
        names = [*params.names(), *state.names()]
        leaves = [*params.tensors(), *state.tensors()]
        found = grad(result, leaves, allow_unused=True)
        arrays = [np.zeros(leaf.shape) if g is None else g.data for leaf, g in zip(leaves, found, strict=True)]
        return float(result.data), dict(zip(names, arrays, strict=True))

    def difference(self, values: Values, end: Place, by: Place) -> float:
        """Differentiate by finite differences with automatic step size."""
        size = max(abs(float(values[by[0]][by[1]])), 0.1)

        def moved(h: float) -> Any:
            other = {name: array.copy() for name, array in values.items()}
            other[by[0]][by[1]] += h * size
            return np.asarray(self.end(other, end))

        return float(derivative(moved, EPS).value) / size

    def found(self, values: Values, end: Place, by: Place, closed: Closed, T: float) -> Found:
        """Compute one derivative in all ways."""
        value, slopes = self.gradient(values, end)
        return Found(
            self.model.dt,
            value,
            float(np.real(closed(values, T))),
            float(slopes[by[0]][by[1]]),
            self.difference(values, end, by),
            slope(closed, values, by, T),
        )


def slope(closed: Closed, values: Values, by: Place, T: float) -> float:
    """Differentiate a closed form by a complex step."""
    moved = {name: array.astype(complex) for name, array in values.items()}
    moved[by[0]][by[1]] += 1j * TINY
    return float(np.imag(closed(moved, T))) / TINY


def motion(case: Case, halved: bool) -> tuple[Motion, float]:
    """Make the motion of a case's scene, and its horizon."""
    found = simphys.load_scene(SCENES / f"{case.scene}.toml", ['runtime.precision="f64"', *case.overrides])
    if halved:
        again = [*case.overrides, f"time.dt={found.dt / 2}"]
        found = simphys.load_scene(SCENES / f"{case.scene}.toml", ['runtime.precision="f64"', *again])
    return Motion(found.model, found.params, found.state, found.steps), found.steps * found.dt
