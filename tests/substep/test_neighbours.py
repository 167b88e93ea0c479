"""Sub-steps over pairs within a cut-off: as sums over all pairs, in any box, however often lists are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.numerics.drift import drift
from simphys.rollout import engine_of, plan, rollout
from simphys.simulator import Model, Record
from simphys.substep import element, neighbours, per_element

from ..helpers.rounding import assert_equal_but_for_rounding

Array = np.ndarray[Any, Any]


@element
def push(d, u, a, b, k, rc):
    s = 1 - d.dot(d) / (rc * rc)
    return (a * b) * k * s * s * s * (d - u.dot(u) * u)


@push.adjoint
def adj_push(d, u, a, b, k, rc, adj):
    s = 1 - d.dot(d) / (rc * rc)
    w, e = s * s * s, a * b
    g = d - u.dot(u) * u
    t = w * g.dot(adj)
    adj_d = e * k * (w * adj - (6 / (rc * rc)) * s * s * g.dot(adj) * d)
    return adj_d, -e * k * w * (2 * u.dot(adj) * u + u.dot(u) * adj), b * k * t, a * k * t, e * t


@push.tangent
def jvp_push(d, u, a, b, k, rc, dd, du, da, db, dk):
    s = 1 - d.dot(d) / (rc * rc)
    w, dw = s * s * s, -(6 / (rc * rc)) * s * s * d.dot(dd)
    g, dg = d - u.dot(u) * u, dd - 2 * u.dot(du) * u - u.dot(u) * du
    de = da * b * k + a * db * k + a * b * dk
    return de * w * g + a * b * k * (dw * g + w * dg)


@element
def crowd(d, a, b, rc):
    s = 1 - d.dot(d) / (rc * rc)
    return a * b * s * s * s


@crowd.adjoint
def adj_crowd(d, a, b, rc, adj):
    s = 1 - d.dot(d) / (rc * rc)
    w = s * s * s * adj
    return -(6 / (rc * rc)) * a * b * s * s * adj * d, b * w, a * w


@crowd.tangent
def jvp_crowd(d, a, b, rc, dd, da, db):
    s = 1 - d.dot(d) / (rc * rc)
    return (da * b + a * db) * s * s * s - (6 / (rc * rc)) * a * b * s * s * d.dot(dd)


DISTANCE = {"d": "position"}
CHARGES = {("a", "b"): "charge"}
CUTOFF = {"rc": "cutoff"}
Push = neighbours(
    push,
    over="particles",
    distance=DISTANCE,
    between={"u": "velocity"},
    both=CHARGES,
    shared={"k": "stiffness"},
    constant=CUTOFF,
    onto="force",
)
Crowd = neighbours(
    crowd, over="particles", distance=DISTANCE, both=CHARGES, constant=CUTOFF, onto="crowd", even=True, result=()
)
Move = per_element(
    drift, over="particles", own={"x": "position", "v": "velocity"}, constant={"e": "time step"},
    results={"position": "x"},
)  # fmt: skip


@dataclass(frozen=True)
class Params(Record):
    charge: Tensor
    stiffness: Tensor


@dataclass(frozen=True)
class State(Record):
    position: Tensor
    velocity: Tensor


@dataclass(frozen=True)
class Grains(Model):
    """Particles of mass 1 that push each other, with friction."""

    n: int
    box: tuple[float, ...] = (4.5, math.inf)
    cutoff: float = 1.4
    skin: float = 0.3
    neighbours: int = 60
    dt: float = 0.04

    Params, State = Params, State

    def param_shapes(self) -> Any:
        return {"charge": (self.n,), "stiffness": ()}

    def state_shapes(self) -> Any:
        return dict.fromkeys(("position", "velocity"), (self.n, len(self.box)))


def step(model: Grains, params: Any, state: Any, control: Any = None) -> State:
    force = Push.apply(model, state.position, state.velocity, params.charge, params.stiffness, model.cutoff)
    velocity = Move.apply(model, state.velocity, force, model.dt)
    return State(Move.apply(model, state.position, velocity, model.dt), velocity)


Grains.bind(step=step, engine=engine_of(step))


def make(n: int, *, width: float = 4.0, batch: tuple[int, ...] = (), **options: Any) -> tuple[Grains, Params, State]:
    """Make random particles, some of which lie outside of the box, which repeats itself."""
    model, random = Grains(n, **options), np.random.default_rng(n)
    dim = len(model.box)
    x = random.uniform(-width, width, (*batch, n, dim))
    values = x, random.uniform(-1.5, 1.5, x.shape), random.uniform(0.5, 1.5, n), 1.3
    position, velocity, charge, stiffness = (tensor(value, requires_grad=True) for value in values)
    return model, Params(charge, stiffness), State(position, velocity)


def add_up(model: Any, x: Array, v: Array, q: Array, k: Array) -> tuple[Array, Array]:
    """Add up all pairs, in loops over all particles."""
    box = np.array(model.box)
    force, crowd = np.zeros_like(x), np.zeros(len(x))
    for i in range(len(x)):
        d = x[i] - x
        for axis in np.flatnonzero(np.isfinite(box)):
            d[:, axis] -= box[axis] * np.round(d[:, axis] / box[axis])
        s = 1 - (d * d).sum(axis=1) / model.cutoff**2
        near = (s > 0) & (np.arange(len(x)) != i)
        u = v[i] - v
        each = (q[i] * q * k * s**3)[:, None] * (d - (u * u).sum(axis=1)[:, None] * u)
        force[i], crowd[i] = each[near].sum(axis=0), (q[i] * q * s**3)[near].sum()
    return force, crowd


BOXES = {
    "open": (math.inf, math.inf),
    "two cells": (4.0, 3.6),
    "many cells, one open axis": (9.0, math.inf),
    "space": (3.5, 5.5, math.inf),
}


CASES = {
    **{box: (BOXES[box], 60, False) for box in BOXES},
    "a particle alone": (BOXES["two cells"], 1, False),
    "two particles": (BOXES["two cells"], 2, False),
    "space, several threads": (BOXES["space"], 60, True),
}


@pytest.mark.parametrize(("box", "n", "threads"), CASES.values(), ids=CASES)
def test_each_particle_feels_those_within_the_cutoff(
    box: tuple[float, ...], n: int, threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: threads)
    model, params, state = make(n, box=box, width=3.0 if n > 2 else 0.4)
    x, v, q, k = state.position, state.velocity, params.charge, params.stiffness
    force, crowd = add_up(model, *[value.data for value in (x, v, q, k)])
    found = Push.apply(model, x, v, q, k, model.cutoff)
    assert_equal_but_for_rounding(found.data, force, ulps=200)
    assert_equal_but_for_rounding(Crowd.apply(model, x, q, model.cutoff).data, crowd, ulps=200)


@pytest.mark.parametrize("threads", [False, True])
def test_the_rules_are_those_of_the_sums(threads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: threads)
    model, params, state = make(30)

    def apply(x: Tensor, v: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return Push.apply(model, x, v, q, k, model.cutoff), Crowd.apply(model, x, q, model.cutoff)

    inputs = (*state.tensors(), *params.tensors())
    gradcheck(apply, inputs, mode="projected", repeats=2)
    dot_product_test(apply, inputs, tolerance=1e-11)


def test_a_force_is_opposite_to_that_on_the_other() -> None:
    model, params, state = make(60)
    force = Push.apply(model, *state.tensors(), *params.tensors(), model.cutoff).data
    assert np.abs(force.sum(axis=0)).max() < 1e-13 * np.abs(force).sum()


def test_a_pair_that_crosses_the_cutoff_does_not_matter_to_the_gradient() -> None:
    """Differences at pairs that come and go agree with the gradient at fixed pairs, as the force is C2 there."""
    model = Grains(2, box=(math.inf, math.inf))
    q, k, v = tensor([1.0, 1.2]), tensor(1.3), tensor([[0.0, 0.0], [0.0, 0.0]])

    def pull(distance: float) -> tuple[float, float]:
        x = tensor([[0.0, 0.0], [distance, 0.0]], requires_grad=True)
        force = Push.apply(model, x, v, q, k, model.cutoff)[1, 0]
        force.backward()
        assert x.grad is not None
        return force.item(), x.grad.numpy()[1, 0]

    h = 1e-4
    for at in (model.cutoff - h / 3, model.cutoff + h / 3):
        difference = (pull(at + h)[0] - pull(at - h)[0]) / (2 * h)
        assert abs(difference - pull(at)[1]) < 20 * h * h  # the second derivative is continuous, and zero here
    x = tensor([[0.0, 0.0], [model.cutoff, 0.0]], requires_grad=True)
    gradcheck(lambda x: Push.apply(model, x, v, q, k, model.cutoff), (x,))


def final(model: Grains, params: Any, state: Any, steps: int = 30, **options: Any) -> list[Array]:
    """Return the last state and the gradients of a sum of its entries."""
    leaves = [tensor(value.data, requires_grad=True) for value in (*params.tensors(), *state.tensors())]
    found = rollout(model, Params(*leaves[:2]), State(*leaves[2:]), steps=steps, **options).final
    ((found.position**2).sum() + (found.velocity * found.position).sum()).backward()
    gradients = [leaf.grad.data for leaf in leaves if leaf.grad is not None]
    assert len(gradients) == 4
    return [found.position.data, found.velocity.data, *gradients]


def test_lists_may_be_made_in_each_step_or_seldom() -> None:
    """Particles cross the skin many times. Kernels with other numbers round otherwise."""
    model, params, state = make(20)
    expected = final(model, params, state, steps=15)
    moved = np.abs(rollout(model, params, state, steps=15).final.position.data - state.position.data)
    assert moved.max() > 2 * model.skin
    for skin in (0.0, 20.0):
        found = final(replace(model, skin=skin), params, state, steps=15)
        for value, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(other, value, rtol=0, atol=1e-11 * np.abs(value).max())


def test_a_motion_goes_on_with_other_lists() -> None:
    """Lists made at another time hold other pairs beyond the cut-off, which add nothing."""
    model, params, state = make(40, skin=0.2)
    whole = rollout(model, params, state, steps=24).states.position.data
    for begin in (5, 11):
        half = rollout(model, params, state, steps=begin).final
        rest = rollout(model, params, half, steps=24 - begin).states.position.data
        np.testing.assert_allclose(rest, whole[begin:], rtol=0, atol=1e-11 * np.abs(whole).max())


@pytest.mark.parametrize("launch", ["one launch", "a launch each step"])
def test_the_engine_is_the_nested_step(launch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if launch != "one launch":
        monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    model, params, state = make(20, batch=(2,), skin=0.1)
    nested = final(model, params, state, mode="nested")
    fused = final(model, params, state)
    for found, value in zip(fused, nested, strict=True):
        np.testing.assert_allclose(found, value, rtol=0, atol=1e-11 * np.abs(value).max())
    whole = plan(model, params, state, steps=30)
    frugal = final(model, params, state, keep="final", memory=int(0.7 * whole.predicted_bytes))
    for found, value in zip(frugal, final(model, params, state, keep="final"), strict=True):
        np.testing.assert_allclose(found, value, rtol=0, atol=1e-11 * np.abs(value).max())


def test_the_derivative_over_a_motion_through_many_lists_is_right() -> None:
    model, params, state = make(12, width=1.8)

    def move(*inputs: Tensor) -> Any:
        return rollout(model, Params(*inputs[:2]), State(*inputs[2:]), steps=12).final.tensors()

    inputs = (*params.tensors(), *state.tensors())
    gradcheck(move, inputs, mode="projected", tolerance=1e-6)
    dot_product_test(move, inputs, tolerance=1e-11)


def test_a_full_list_is_an_error() -> None:
    model, params, state = make(30, neighbours=3, width=1.0)
    with pytest.raises(InputError, match="a particle has at most 3 neighbours; found one has more"):
        Push.apply(model, *state.tensors(), *params.tensors(), model.cutoff)
    for mode in ("fused", "nested"):
        with pytest.raises(InputError):
            rollout(model, params, state, steps=3, mode=mode)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"box": (2.0, 9.0)}, "at least two cut-offs long: 2.8; found 2"),
        ({"box": (9.0, 9.0, 9.0)}, "`box` of the model has 2 lengths; found 3"),
        ({"skin": -1.0}, "skin is not negative; found 1.4, 60, -1"),
    ],
)
def test_a_region_that_does_not_fit_is_refused(changed: dict[str, Any], message: str) -> None:
    model, params, state = make(5)
    with pytest.raises(InputError, match=message):
        Push.apply(replace(model, **changed), *state.tensors(), *params.tensors(), model.cutoff)


def test_positions_are_vectors() -> None:
    with pytest.raises(InputError, match=r"positions are vectors \[n, dim\]; found shape \(4,\)"):
        Crowd.apply(make(4)[0], tensor(np.ones(4)), tensor(np.ones(4)), 1.0)


def test_a_model_says_how_far_particles_see() -> None:
    with pytest.raises(InputError, match="the model has box, cutoff, skin, neighbours; found no box, cutoff"):
        Crowd.apply(None, tensor(np.ones((4, 2))), tensor(np.ones(4)), 1.0)
