"""Sub-steps of kernels over an engine's arrays, as users write them: nested and generated alike."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Tensor, kernel, runtime, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.rollout import engine_of, plan, rollout
from simphys.simulator import Model, Record
from simphys.substep import Entries, Target, element, launched, per_element

from ..helpers.contract import tolerance

N, DIM, STEPS = 5, 2, 8
Out = Mapping[str, Target]
Launch = Callable[[], Any]


@functools.cache
def ring_kernel(real: Any) -> Any:
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @no_type_check
    @kernel
    def multiply(
        size: ti.i32, by_a: ti.i32, by_b: ti.i32, adds: ti.i32, a: reals, b: reals, out: reals, begin_a: ti.i32,
        begin_b: ti.i32, begin: ti.i32,
    ):  # fmt: skip
        """Set each entry to the product of one of a and one of b, so many entries further on in a ring, or add it."""
        for i in range(size):
            value = a[begin_a + (i + by_a) % size] * b[begin_b + (i + by_b) % size]
            out[begin + i] = value + ti.select(adds == 1, out[begin + i], 0.0)

    return multiply


def multiply(a: Entries, by_a: int, b: Entries, by_b: int, target: Target) -> Launch:
    size, out = N * DIM, target.entries
    loop = ring_kernel(runtime.real())
    bound = loop.bind(size, by_a % size, by_b % size, int(target.adds), a.numbers, b.numbers, out.numbers)
    return lambda: bound(a.begin, b.begin, out.begin)


def ring(model: Any, a: Entries, b: Entries, out: Out) -> Launch:
    """Multiply each entry of a by the next one of b."""
    return multiply(a, 0, b, 1, out["product"])


def adj_ring(model: Any, a: Entries, b: Entries, adj_product: Entries, out: Out) -> Launch:
    factors = {"b": (-1, a, -1), "a": (0, b, 1)}
    launches = [multiply(adj_product, *factors[name], out[name]) for name in factors if name in out]
    return lambda: [launch() for launch in launches]


def jvp_ring(model: Any, a: Entries, b: Entries, da: Entries, db: Entries, out: Out) -> Launch:
    target = out["product"]
    launches = multiply(da, 0, b, 1, target), multiply(a, 0, db, 1, Target(target.entries, adds=True))
    return lambda: [launch() for launch in launches]


@element
def average(x, y):
    return 0.5 * (x + y)


@average.adjoint
def adj_average(x, y, adj):
    return 0.5 * adj, 0.5 * adj


Ring = launched(ring, adjoint=adj_ring, tangent=jvp_ring, results={"product": "a"}, name="Ring")
OWN = {"x": "position", "y": "y"}
Average = per_element(average, over="nodes", own=OWN)
AverageOfCells = per_element(average, over="cells", own=OWN, components_first=True)


@dataclass(frozen=True)
class Params(Record):
    factor: Tensor
    """Factors, [n, dim]."""


@dataclass(frozen=True)
class State(Record):
    position: Tensor
    """Positions, [n, dim]."""


def shape_of(kind: str) -> tuple[int, ...]:
    return (DIM, N, 1) if kind == "between loops over cells" else (N, DIM)


@dataclass(frozen=True)
class Rings(Model):
    kind: str
    dt: float = 1.0
    Params = Params
    State = State

    @property
    def cells(self) -> Any:
        return (N, 1)

    def param_shapes(self) -> Any:
        return {"factor": shape_of(self.kind)}

    def state_shapes(self) -> Any:
        return {"position": shape_of(self.kind)}


def step(model: Rings, params: Params, state: State, control: Tensor | None = None) -> State:
    x, factor = state.position, params.factor
    if model.kind == "alone":
        return State(Ring.apply(model, factor, x))
    if model.kind == "one value twice":
        return State(Ring.apply(model, x, x))
    mix = AverageOfCells if model.kind == "between loops over cells" else Average
    mean = mix.apply(model, x, factor)
    return State(mix.apply(model, Ring.apply(model, mean, mean), Ring.apply(model, x, mean)))


Rings.bind(step=step, engine=engine_of(step))
KINDS = ("alone", "one value twice", "between loops", "between loops over cells")


def run(kind: str, factor: Tensor, position: Tensor, **options: Any) -> Tensor:
    return rollout(Rings(kind), *records(factor, position), steps=STEPS, **options).states.position


def records(factor: Tensor, position: Tensor) -> tuple[Params, State]:
    return Params(factor), State(position)


def make_inputs(kind: str, batch: int) -> tuple[Tensor, ...]:
    random = np.random.default_rng(0)
    shapes = shape_of(kind), (*([batch] if batch else []), *shape_of(kind))
    return tuple([tensor(random.uniform(0.99, 1.01, shape), requires_grad=True) for shape in shapes])


@pytest.mark.gpu
@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_nested_steps(kind: str, batch: int) -> None:
    """An adjoint may read elsewhere than it writes, and write the adjoints of its inputs in any order."""
    found = []
    budget = 0.9 * plan(Rings(kind), *records(*make_inputs(kind, batch)), steps=STEPS).predicted_bytes
    for options in ({"mode": "nested"}, {}, {"memory": int(budget)}):
        inputs = make_inputs(kind, batch)
        positions = run(kind, *inputs, **options)
        (positions * positions).sum().backward()
        found.append([positions.data, *[np.zeros(x.shape) if x.grad is None else x.grad.data for x in inputs]])
    for other in found[1:]:
        for nested, fused in zip(found[0], other, strict=True):
            np.testing.assert_allclose(fused, nested, rtol=tolerance(1e-12, 1e-4), atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_adjoint_and_tangent_agree(kind: str) -> None:
    dot_product_test(lambda *x: run(kind, *x), make_inputs(kind, 2))
    dot_product_test(lambda *x: run(kind, *x, mode="nested"), make_inputs(kind, 0))
