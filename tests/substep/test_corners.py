"""Values at points that move over a grid: against NumPy and finite differences, in a step and in each kind of loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, gradcheck, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.numerics.multilinear import interpolate
from simphys.rollout import engine_of, rollout
from simphys.simulator import Model, Record
from simphys.substep import corners, element, per_cell

STEPS = 3


@element
def both(f, r, far, s, weight, shift):
    """Combine values around two points."""
    return weight * interpolate(f, r) * interpolate(far, s) + shift * r[0]


@both.adjoint
def adj_both(f, r, far, s, weight, shift, adj):
    a, b = interpolate(f, r), interpolate(far, s)
    adj_f, adj_r = interpolate_adjoint(f, r, adj * weight * b)
    adj_far, adj_s = interpolate_adjoint(far, s, adj * weight * a)
    adj_r[0] += shift * adj
    return adj_f, adj_r, adj_far, adj_s, adj * a * b


@both.tangent
def jvp_both(f, r, far, s, weight, shift, df, dr, dfar, ds, dweight):
    a, b = interpolate(f, r), interpolate(far, s)
    da, db = interpolate_tangent(f, r, df, dr), interpolate_tangent(far, s, dfar, ds)
    return dweight * a * b + weight * (da * b + a * db) + shift * dr[0]


interpolate_adjoint = interpolate.element.adjoint.func
interpolate_tangent = interpolate.element.tangent.func


@element
def depart(p, u, h):
    return p - h * u


@depart.adjoint
def adj_depart(p, u, h, adj):
    return -h * adj


@depart.tangent
def jvp_depart(p, u, h, du):
    return -h * du


Sample = corners(interpolate, points={"r": "point"}, around={"f": ("smoke", "r")}, periodic="wraps")
Tracer = corners(interpolate, points={"r": "point"}, around={"f": ("smoke", "r")}, periodic="wraps", over="tracers")
Both = corners(
    both,
    points={"r": "there", "s": "back"},
    around={"f": ("smoke", "r"), "far": ("other", "s")},
    own={"weight": "weight"},
    constant={"shift": "shift"},
    periodic="wraps",
)
Depart = per_cell(depart, own={"u": "velocity"}, constant={"p": "place", "h": "dt"}, results={"point": "u"})


@dataclass(frozen=True)
class Params(Record):
    weight: Tensor
    """Weight of each cell, [*cells]."""


@dataclass(frozen=True)
class State(Record):
    smoke: Tensor
    """Smoke, [*cells]."""
    velocity: Tensor
    """Velocity, [*cells, dim]."""


@dataclass(frozen=True)
class Carried(Model):
    """Smoke that a velocity carries, which the smoke changes."""

    cells: tuple[int, ...]
    wraps: tuple[bool, ...]
    dt: float = 0.7
    Params, State = Params, State

    def param_shapes(self) -> Any:
        return {"weight": self.cells}

    def state_shapes(self) -> Any:
        return {"smoke": self.cells, "velocity": (*self.cells, len(self.cells))}

    @property
    def places(self) -> Any:
        """Indices of the cells as points."""
        return np.stack(np.meshgrid(*map(np.arange, self.cells), indexing="ij"), -1).astype(runtime.real_dtype())


def step(model: Carried, params: Params, state: State, control: Tensor | None = None) -> State:
    places = model.places
    there = Depart.apply(model, places, state.velocity, model.dt)
    back = Depart.apply(model, places, state.velocity, -model.dt)
    smoke = Sample.apply(model, state.smoke, there)
    smoke = smoke + Both.apply(model, state.smoke, there, smoke, back, params.weight, 0.3)
    return State(smoke, state.velocity * 0.9)


Carried.bind(step=step, engine=engine_of(step))

GRIDS = {
    "closed": Carried((4, 5), (False, False)),
    "torus": Carried((3, 4), (True, True)),
    "space": Carried((3, 2, 4), (False, True, False)),
    "line": Carried((6,), (False,)),
}
EACH = pytest.mark.parametrize("model", GRIDS.values(), ids=GRIDS)


def values_at(model: Carried, smoke: Any, points: Any) -> Any:
    """Interpolate in NumPy, from an array that is extended on all sides."""
    wide, places = smoke, []
    for axis, (n, wraps) in enumerate(zip(model.cells, model.wraps, strict=True)):
        pad = [(1, 1) if a == axis else (0, 0) for a in range(smoke.ndim)]
        wide = np.pad(wide, pad, mode="wrap" if wraps else "edge")
        p = points[..., axis]
        places.append(np.mod(p, n) if wraps else np.clip(p, -0.5, n - 0.5))
    below = [np.floor(p).astype(int) for p in places]
    found = np.zeros(points.shape[:-1])
    for corner in np.ndindex(*(2,) * smoke.ndim):
        weight = np.ones_like(found)
        for at, p, b in zip(corner, places, below, strict=True):
            weight = weight * (p - b if at else 1 - (p - b))
        found += weight * wide[tuple([b + at + 1 for b, at in zip(below, corner, strict=True)])]
    return found


def make_inputs(model: Carried, *, batch: int = 0) -> list[Tensor]:
    random = np.random.default_rng(5)
    lead = (batch,) if batch else ()
    shapes = [model.cells, (*lead, *model.cells), (*lead, *model.cells, len(model.cells))]
    return [tensor(random.uniform(-1.3, 1.3, shape), requires_grad=True) for shape in shapes]


def run(model: Carried, mode: Any, weight: Tensor, smoke: Tensor, velocity: Tensor, **options: Any) -> Any:
    return rollout(model, Params(weight), State(smoke, velocity), steps=STEPS, mode=mode, **options).states.smoke


@EACH
def test_values_are_those_between_the_corners(model: Carried) -> None:
    random = np.random.default_rng(1)
    smoke, points = random.standard_normal(model.cells), random.uniform(-3, 8, (20, len(model.cells)))
    found = Tracer.apply(model, tensor(smoke), tensor(points)).data
    np.testing.assert_allclose(found, values_at(model, smoke, points), atol=1e-13)
    for far in (np.full_like(points, 1e9), np.full_like(points, np.nan)):
        Tracer.apply(model, tensor(smoke), tensor(far))  # reads no memory beyond the grid


@EACH
def test_adjoints_and_tangents_are_right(model: Carried) -> None:
    random = np.random.default_rng(2)
    n, dim = model.cells, len(model.cells)
    smoke, other, weight = (tensor(random.standard_normal(n), requires_grad=True) for _ in range(3))
    there, back = (tensor(random.uniform(-1, 5, (*n, dim)), requires_grad=True) for _ in range(2))
    tracers = tensor(random.uniform(-1, 5, (7, dim)), requires_grad=True)
    for function, inputs in (
        (lambda *x: Tracer.apply(model, *x), (smoke, tracers)),
        (lambda *x: Sample.apply(model, *x), (smoke, there)),
        (lambda *x: Both.apply(model, *x, 0.3), (smoke, there, other, back, weight)),
    ):
        gradcheck(function, inputs, mode="projected")
        dot_product_test(function, inputs)


@EACH
@pytest.mark.parametrize("large", [False, True], ids=["in order", "shared by threads"])
@pytest.mark.parametrize("batch", [0, 2])
def test_steps_are_the_same_in_each_mode(
    model: Carried, large: bool, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
        monkeypatch.setattr(runtime, "parallel", lambda work_us: True)
    found = []
    for mode in ("nested", "fused"):
        inputs = make_inputs(model, batch=batch)
        smoke = run(model, mode, *inputs)
        (smoke * smoke).sum().backward()
        found.append([smoke.data, *[x.grad.data for x in inputs if x.grad is not None]])
    for nested, fused in zip(*found, strict=True):
        np.testing.assert_allclose(fused, nested, rtol=1e-12, atol=1e-13)
    gradcheck(lambda *x: run(model, "fused", *x), make_inputs(model), mode="projected")
    dot_product_test(lambda *x: run(model, "fused", *x), make_inputs(model))


def test_points_must_have_an_entry_for_each_axis() -> None:
    model = GRIDS["closed"]
    with pytest.raises(InputError, match="point has entries of shape"):
        Tracer.apply(model, tensor(np.ones(model.cells)), tensor(np.ones((3, 3))))
    with pytest.raises(InputError, match="lies around a point"):
        corners(interpolate, points={"r": "point"}, around={"f": ("smoke", "s")})
