"""The engine of a step with a hand-written Function: equal to nested steps, with and without a tangent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, Tensor, gradcheck, ops, tensor
from simphys.autograd.errors import MissingJvp
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.rollout import rollout
from simphys.rollout.engine import NestedEngine, engine_of
from simphys.simulator import Model, Record

STEPS = 6


@dataclass(frozen=True)
class Params(Record):
    rate: Tensor
    """Growth rate, [n]."""
    unused: Tensor
    """A number that nothing depends on."""


@dataclass(frozen=True)
class State(Record):
    size: Tensor
    """Size, [n]."""
    start: Tensor
    """A field that a step hands on as it is, [n]."""


class Grow(Function):
    """size (1 + rate size u)."""

    @staticmethod
    def forward(ctx: Context, size: Tensor, rate: Tensor, u: Tensor) -> Any:
        ctx.save_for_backward(size, rate, u)
        return size.data * (1 + rate.data * size.data * u.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        size, rate, u = (x.data for x in ctx.saved_tensors)
        return adj.data * (1 + 2 * rate * size * u), adj.data * size**2 * u, (adj.data * size**2 * rate).sum()


class GrowAlong(Grow):
    """The same with a tangent."""

    @staticmethod
    def jvp(ctx: Context, dsize: Any, drate: Any, du: Any) -> Any:
        size, rate, u = (x.data for x in ctx.saved_tensors)
        return dsize * (1 + 2 * rate * size * u) + size**2 * (drate * u + rate * du)


@dataclass(frozen=True)
class Growth(Model):
    function: Any = GrowAlong
    dt: float = 0.1
    Params = Params
    State = State

    def param_shapes(self) -> Any:
        return {"rate": (3,), "unused": ()}

    def state_shapes(self) -> Any:
        return {"size": (3,), "start": (3,)}

    def control_shape(self) -> Any:
        return ()


def step(model: Growth, params: Params, state: State, control: Tensor | None = None) -> State:
    grown = model.function.apply(state.size, params.rate, tensor(0.5) if control is None else control)
    return State(grown - 0.1 * ops.sin(state.start), state.start)


Growth.bind(step=step, engine=engine_of(step))


def make_inputs(*, batch: int = 0) -> tuple[Tensor, ...]:
    random = np.random.default_rng(4)
    lead = (batch,) if batch else ()
    shapes = {"rate": (3,), "size": (*lead, 3), "start": (3,), "control": (*lead, STEPS)}
    return tuple([tensor(random.uniform(0.2, 1, shape), requires_grad=True) for shape in shapes.values()])


def run(model: Growth, mode: Any, *inputs: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
    rate, size, start, control = inputs
    params = Params(rate, tensor(1.0, requires_grad=True))
    found = rollout(model, params, State(size, start), control=control, steps=STEPS, mode=mode, **options)
    return found.states.size, found.final.start


def test_the_fallback_is_taken_by_itself() -> None:
    arrays = {"rate": np.ones(3), "unused": np.array(1.0)}
    options: Any = {"batch": 1, "needs": frozenset({"rate"}), "deterministic": False}
    assert isinstance(Growth().engine(arrays, np.ones(STEPS), **options), NestedEngine)
    assert isinstance(Growth().engine(arrays, None, **options), NestedEngine)


@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("budget", [False, True], ids=["all stored", "budget"])
def test_values_and_gradients_are_those_of_nested_steps(batch: int, budget: bool) -> None:
    found = []
    options = {"memory": 3900 if batch else 2600} if budget else {}
    for mode, chosen in (("nested", {}), ("fused", options)):
        inputs = make_inputs(batch=batch)
        sizes, start = run(Growth(), mode, *inputs, **chosen)
        ((sizes * sizes).sum() + start.sum()).backward()
        found.append([sizes.data, *[x.grad.data for x in inputs if x.grad is not None]])
        assert len(found[-1]) == 5
    for nested, fused in zip(*found, strict=True):
        # The size is squared in each step, which doubles its relative error: rounding ends at 2^6 times as much.
        np.testing.assert_allclose(fused, nested, rtol=1e-12, atol=1e-13)


def test_adjoint_and_tangent_are_right() -> None:
    gradcheck(lambda *x: run(Growth(), "fused", *x), make_inputs())
    dot_product_test(lambda *x: run(Growth(), "fused", *x), make_inputs(batch=2))


def test_without_a_tangent_of_a_function_there_is_none_of_the_rollout() -> None:
    gradcheck(lambda *x: run(Growth(Grow), "fused", *x), make_inputs())
    with pytest.raises(MissingJvp, match="Grow has no jvp"):
        dot_product_test(lambda *x: run(Growth(Grow), "fused", *x), make_inputs())
