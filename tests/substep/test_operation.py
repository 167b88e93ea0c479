"""Operations on whole arrays between the loops of a step: nested and generated alike, in all that an engine does."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, gradcheck, tensor
from simphys.autograd.errors import InputError, MissingJvp
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.rollout import engine_of, rollout
from simphys.rollout.engine import GeneratedEngine
from simphys.simulator import Model, Record
from simphys.substep import element, operation, per_element

STEPS = 6
N = 5


@dataclass(frozen=True)
class Params(Record):
    rate: Tensor
    """Growth rate, [n]."""
    weight: Tensor
    """Weight of each entry, [n]."""


@dataclass(frozen=True)
class State(Record):
    size: Tensor
    """Size, [n]."""


def share(model: Any, size: Any, weight: Any, control: Any) -> Any:
    """Return shares of the weighted sum, and the sum."""
    total = control * (weight * size).sum()
    return size * total, total


def adj_share(model: Any, size: Any, weight: Any, control: Any, total: Any, adj_part: Any, adj_total: Any) -> Any:
    w = (size * adj_part).sum() + adj_total
    return adj_part * total + w * control * weight, w * control * size, w * (weight * size).sum()


def jvp_share(
    model: Any, size: Any, weight: Any, control: Any, total: Any, dsize: Any, dweight: Any, dcontrol: Any
) -> Any:
    dtotal = control * (dweight * size + weight * dsize).sum() + dcontrol * (weight * size).sum()
    return dsize * total + size * dtotal, dtotal


def scale(model: Any, rate: Any) -> Any:
    return rate / rate.sum()


def adj_scale(model: Any, rate: Any, wanted: Any, adj_scaled: Any) -> Any:
    assert wanted == ("rate",)
    total = rate.sum()
    return adj_scaled / total - (rate * adj_scaled).sum() / total**2


def jvp_scale(model: Any, rate: Any, drate: Any) -> Any:
    return drate / rate.sum() - rate * drate.sum() / rate.sum() ** 2


@element
def grow(x, part, rate, h):
    return x + h * (rate * x - part * x)


@grow.adjoint
def adj_grow(x, part, rate, h, adj):
    return adj * (1 + h * (rate - part)), -h * x * adj, h * x * adj


@grow.tangent
def jvp_grow(x, part, rate, h, dx, dpart, drate):
    return dx + h * (drate * x + rate * dx - dpart * x - part * dx)


RESULTS: Any = {"part": "size", "total": lambda model: ()}
Share = {
    cheap: operation(share, adjoint=adj_share, tangent=jvp_share, results=RESULTS, is_cheap=cheap)
    for cheap in (False, True)
}
Scale = operation(scale, adjoint=adj_scale, tangent=jvp_scale, results={"scaled": "rate"})
Grow = per_element(grow, over="n", own={"x": "size", "part": "part", "rate": "rate"}, constant={"h": "h"})


@dataclass(frozen=True)
class Growth(Model):
    cheap: bool = False
    dt: float = 0.1
    Params = Params
    State = State

    def param_shapes(self) -> Any:
        return {"rate": (N,), "weight": (N,)}

    def state_shapes(self) -> Any:
        return {"size": (N,)}

    def control_shape(self) -> Any:
        return ()


def step(model: Growth, params: Params, state: State, control: Tensor | None = None) -> State:
    rate = Scale.apply(model, params.rate)
    half = Grow.apply(model, state.size, state.size, rate, 0.5 * model.dt)
    part, _ = Share[model.cheap].apply(model, half, params.weight, control)
    part, _ = Share[model.cheap].apply(model, half + part, params.weight, control)
    return State(Grow.apply(model, half, part, rate, model.dt))


Growth.bind(step=step, engine=engine_of(step))


def make_inputs(batch: int = 0) -> tuple[Tensor, ...]:
    random = np.random.default_rng(4)
    lead = (batch,) if batch else ()
    shapes = ((*lead, N), (N,), (*lead, N), (*lead, STEPS))
    return tuple([tensor(random.uniform(0.2, 1, shape), requires_grad=True) for shape in shapes])


def run(model: Growth, mode: Any, *inputs: Tensor, **options: Any) -> Tensor:
    rate, weight, size, control = inputs
    found = rollout(model, Params(rate, weight), State(size), control=control, steps=STEPS, mode=mode, **options)
    return found.states.size


@pytest.mark.parametrize("cheap", [False, True], ids=["stored", "computed again"])
@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("budget", [False, True], ids=["all stored", "budget"])
def test_values_and_gradients_are_those_of_nested_steps(cheap: bool, batch: int, budget: bool) -> None:
    model, found = Growth(cheap), []
    for mode, options in (("nested", {}), ("fused", {"memory": "2kB"} if budget and not batch else {})):
        inputs = make_inputs(batch)
        sizes = run(model, mode, *inputs, **options)
        (sizes * sizes).sum().backward()
        found.append([sizes.data, *[x.grad.data for x in inputs if x.grad is not None]])
        assert len(found[-1]) == 5
    for nested, fused in zip(*found, strict=True):
        np.testing.assert_allclose(fused, nested, rtol=1e-11, atol=1e-13)  # sizes grow, and rounding with them


@pytest.mark.parametrize("cheap", [False, True], ids=["stored", "computed again"])
def test_adjoint_and_tangent_are_right(cheap: bool) -> None:
    gradcheck(lambda *x: run(Growth(cheap), "fused", *x), make_inputs(), mode="projected")
    dot_product_test(lambda *x: run(Growth(cheap), "fused", *x), make_inputs(2))
    dot_product_test(lambda *x: run(Growth(cheap), "nested", *x), make_inputs())


def test_what_the_adjoint_reads_is_stored_unless_it_is_cheap() -> None:
    options: Any = {"batch": 1, "needs": frozenset({"rate", "weight"}), "deterministic": False}
    arrays = {"rate": np.ones(N), "weight": np.ones(N)}
    rows = []
    for cheap in (False, True):
        engine = Growth(cheap).engine(arrays, np.ones(STEPS), **options)
        assert isinstance(engine, GeneratedEngine)
        rows.append(engine.segment_bytes(11, dense=False) - engine.segment_bytes(10, dense=False))
    assert rows[1] == 8 * N, "the state alone"
    assert rows[0] == 8 * (N + 2 * N + 2), "the state, what enters and leaves the second operation, and both totals"


def test_operations_without_a_tangent_say_so() -> None:
    alone = operation(scale, adjoint=adj_scale, results={"scaled": "rate"})
    x = tensor(np.ones(N), requires_grad=True)
    gradcheck(lambda x: alone.apply(Growth(), x), (x,))
    with pytest.raises(MissingJvp):
        dot_product_test(lambda x: alone.apply(Growth(), x), (x,))


def test_a_parameter_that_names_nothing_is_refused() -> None:
    def wrong(model: Any, rates: Any, adj_scaled: Any) -> Any:
        return adj_scaled

    with pytest.raises(InputError, match="rates"):
        operation(scale, adjoint=wrong, results={"scaled": "rate"})


@pytest.mark.gpu
def test_a_model_ends_with_its_last_rollout() -> None:
    model = Growth(cheap=False)
    run(model, "fused", *make_inputs()).sum().backward()
    run(model, "nested", *make_inputs()).sum().backward()
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
