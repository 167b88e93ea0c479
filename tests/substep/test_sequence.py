"""Sequences: events in the order of time, their derivatives, nested and generated; and declarations that do not fit."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, linearize, no_grad, tensor
from simphys.autograd.errors import InputError, MissingJvp
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import engine_of, plan, rollout
from simphys.rollout.engine import GeneratedEngine
from simphys.rollout.trajectory import BlowUp
from simphys.substep import Parameters, element, trace_of

from ..helpers import beads
from ..helpers.beads import Fall, State, declare, make_beads
from ..helpers.contract import System, assert_same, evaluate
from ..helpers.rounding import assert_equal_but_for_rounding

STEPS = 5


def fall(*inputs: Tensor, duration: float = 1.3) -> Any:
    """Apply the sub-step to the state and the parameters, in their order."""
    return Fall.apply(beads.Beads(), *inputs, duration)


def leaves() -> tuple[Tensor, ...]:
    _, params, state = make_beads()
    return *state.tensors(), *params.tensors()


def test_its_derivatives_are_right() -> None:
    """Through two impacts of beads and two on the floor; every element of the Jacobian."""
    kinds = trace_of(Fall).apply(beads.Beads(), *[x.detach() for x in leaves()], 1.3)[3].data
    assert sorted(kinds[kinds > 0].tolist()) == [1, 1, 2, 2]
    gradcheck(fall, leaves(), tolerance=1e-7)
    dot_product_test(fall, leaves(), tolerance=1e-12)


def test_a_derived_tangent_does_not_depend_on_the_end() -> None:
    """A step is divided at other events: the end of the time is another one when tangents are pushed."""

    @element
    def meet_by(x_i, v_i, x_j, v_j, size, end):
        time = (x_i - x_j + size) / (v_j - v_i)
        if time > end:
            time = end
        return time, 1e-12

    meet_by.adjoint(inspect.unwrap(beads.adj_meet))
    declared = declare(events=[beads.MEET._replace(when=meet_by)], sides="")
    inputs = leaves()
    pushed = declared.apply(beads.Beads(), *[inputs[place] for place in (0, 1, 2, 3, 4, 5, 6)], 1.3)
    with pytest.raises(MissingJvp, match=r"meet_by has no tangent: .* depends on end\. Add @meet_by\.tangent"):
        linearize(pushed, inputs[:1])


def test_it_traces_what_happens() -> None:
    """The first bead meets the second one, after the time of their approach; each row begins where the last ended."""
    _, params, state = make_beads()
    with no_grad():
        heights, speeds, times, kinds, first, second = [
            x.data for x in trace_of(Fall).apply(beads.Beads(), *leaves(), 1.3)
        ]
    assert times[0] == pytest.approx((0.5 - 0.1 - 0.05) / 1.4) and (kinds[0], first[0], second[0]) == (1, 0, 1)
    np.testing.assert_array_equal(heights[:3], state.height.data)
    last = int(np.flatnonzero(kinds == 0)[0])
    assert times[: last + 1].sum() == pytest.approx(1.3)
    final = fall(*leaves())[1].data
    begin, t = speeds[3 * last : 3 * last + 3], times[last]
    assert_equal_but_for_rounding(
        final, begin - params.gravity.data * t + params.wind.data * t**2, size=np.abs(begin).max()
    )


def batch() -> System:
    model, params, state = make_beads()
    speeds = np.stack([state.speed.data, 0.8 * state.speed.data])
    masses = np.stack([params.mass.data, params.mass.data[::-1]])
    leaf = [tensor(values, requires_grad=True) for values in (masses, speeds)]
    return System(model, params.replace(mass=leaf[0]), state.replace(speed=leaf[1]))


@pytest.mark.parametrize("make", [lambda: System(*make_beads()), batch], ids=["one", "two members"])
def test_generated_engines_agree_with_the_nested_graph(make: Any) -> None:
    system = make()
    expected = evaluate(system, STEPS, mode="nested")
    for options in ({}, {"deterministic": False}, {"mode": "step"}):
        assert_same(evaluate(make(), STEPS, **options), expected, 1e-11)
    engine = engine_of(beads.step)(
        system.model, system.params.arrays(), None, batch=1, needs=frozenset(), deterministic=True
    )
    assert isinstance(engine, GeneratedEngine)


@dataclass(frozen=True)
class Drifters(beads.Beads):
    """Beads whose speed at the start of a step is their wind, too."""


def step_of_drifters(model: Any, params: Any, state: State, control: Tensor | None = None) -> State:
    p, speed = params, state.speed + 0.01 * state.height
    given = state.height, speed, speed, p.gravity, p.size, p.mass, p.restitution, p.floor
    return State(*Fall.apply(model, *given, model.dt))


Drifters.bind(step=step_of_drifters, engine=engine_of(step_of_drifters))


def test_an_array_that_is_state_and_something_else_has_the_sum_of_both_adjoints() -> None:
    def make() -> System:
        _, params, state = make_beads()
        return System(Drifters(), params.replace(wind=params.wind.detach()), state)

    expected = evaluate(make(), STEPS, mode="nested")
    for options in ({}, {"deterministic": False}, {"mode": "step"}):
        assert_same(evaluate(make(), STEPS, **options), expected, 1e-11)


def test_a_budget_changes_no_bit_of_a_gradient() -> None:
    def pull(memory: int | str) -> bytes:
        model, params, state = make_beads(dt=0.03)
        rollout(model, params, state, steps=40, keep="final", memory=memory).final.height.sum().backward()
        assert params.mass.grad is not None
        return params.mass.grad.data.tobytes()

    model, params, state = make_beads(dt=0.03)
    budget = int(0.95 * plan(model, params, state, steps=40, memory="all", keep="final").predicted_bytes)
    assert pull(budget) == pull("all")


def test_a_parameter_that_is_zero_and_one_without_adjoint() -> None:
    model, params, state = make_beads()
    params = params.replace(wind=tensor(np.zeros(3)), gravity=params.gravity.detach())
    system = System(model, params, state)
    assert_same(evaluate(system, STEPS), evaluate(system, STEPS, mode="nested"), 1e-11)


def test_an_element_that_nothing_hits_and_no_side() -> None:
    model, params, state = make_beads(floors=0)
    found = Fall.apply(model, *state.tensors(), *params.tensors(), 1.3)[0]
    assert float(found.data[1]) < float(params.floor.data[0])
    alone = beads.Beads(beads=1)
    one = params.replace(wind=params.wind[:1], mass=params.mass[:1])
    inputs = (state.height[:1], state.speed[:1], *one.tensors())
    final = Fall.apply(alone, *inputs, 0.1)[0]
    assert float(final.data[0]) == pytest.approx(0.1 + 0.1 * 0.6 - 0.5 * 1.1 * 0.01)


def test_more_events_than_the_limit_give_what_is_not_a_number() -> None:
    """And so does a state that is not finite, after which no search runs."""
    model, params, state = make_beads(limit=1, dt=1.3)
    assert np.isnan(Fall.apply(model, *leaves(), 1.3)[0].data).all()
    with pytest.raises(BlowUp), no_grad():
        rollout(model, params, state, steps=10)
    bad = State(tensor([0.2, np.inf, 1.3]), state.speed)
    assert np.isnan(Fall.apply(model, *bad.tensors(), *params.tensors(), 1.3)[1].data).all()


@element
def early(x, v, end):
    return end - x, 0.0


@early.adjoint
def adj_early(x, v, end, adj_time, adj_slack):
    return -adj_time * end, 0.0 * v


@element
def alone(x, v):
    return 2 * x


@alone.adjoint
def adj_alone(x, v, adj):
    return 2 * adj, 0.0 * v


OWN = Parameters(own={"x": "height", "v": "speed"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"events": [beads.LAND._replace(parameters=OWN)]}, r"nothing for g, floor"),
        ({"events": [beads.MEET._replace(replaces=("v_i",))]}, r"2 results for v_i"),
        ({"events": [beads.MEET._replace(replaces=("v_i", "m_j"))]}, r"replace entries of the state.*m_j"),
        ({"events": [beads.MEET._replace(side="end", end="nothing")]}, r"one of two elements, or of one element and a"),
        ({"events": [beads.LAND._replace(when=early, parameters=OWN)]}, r"an array for each of x, v, floor, side"),
        ({"events": [beads.LAND._replace(func=alone, when=early, parameters=OWN, replaces=("x",))]}, "not depend on"),
        ({"events": [beads.LAND._replace(func=alone, when=alone, parameters=OWN, replaces=("x",))]}, "a time and its"),
        ({"move": beads.MOVE._replace(time="s")}, r"nothing for t"),
        ({"events": [beads.LAND._replace(parameters=replace(OWN, shared={"g": "mass", "floor": "floor"}))]}, "mass"),
        ({"state": ("height",)}, r"replace entries of the state.*found v"),
    ],
)
def test_declarations_that_do_not_fit(changes: dict[str, Any], message: str) -> None:
    events = [*changes["events"], beads.MEET] if "events" in changes else [beads.MEET, beads.LAND]
    with pytest.raises(InputError, match=message):
        declare(**{**changes, "events": events})


def test_models_and_arrays_that_do_not_fit() -> None:
    with pytest.raises(InputError, match=r"`limit` of the model is a count; found None"):
        Fall.apply(None, *leaves(), 1.0)
    _, params, state = make_beads()
    with pytest.raises(InputError, match="an entry for each of the beads"):
        Fall.apply(beads.Beads(), state.height[:2], state.speed, *params.tensors(), 1.0)
