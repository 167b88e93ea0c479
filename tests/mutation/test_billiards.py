"""Every term in the derivatives of billiards is needed: sub-steps, their kernels, the fused legs, the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.autograd.proof.mutation import ERRORS, Mutant
from simphys.rollout import rollout
from simphys.simulators.billiards import (
    Billiards,
    State,
    bounce,
    engine,
    flight,
    fused_adjoint,
    fused_tangent,
    impact,
    time_of_impact,
)

from ..simulators.billiards.tables import busy, leaf, leaves, unpack
from .sweep import Sweep, stale, use_engine

EACH = 2
"""Number of mutants per rule in a sample: most compile a kernel."""

PLACES = [[0.3, 0.4], [0.9, 0.9], [0.6, 0.62]]

EQUIVALENT = {
    "functions.adj_flight: a > 0 -> a >= 0": "at a = 0 both forms of a ball at rest are 0, or it moves",
    "functions.adj_flight: u > 0 -> u >= 0": "a direction times 0",
    "functions.jvp_flight: a > 0 -> a >= 0": "at a = 0 both forms of a ball at rest are 0, or it moves",
    "functions.jvp_flight: u > 0 -> u >= 0": "a direction of a ball at rest, which is not read",
    "functions.jvp_flight: a * t >= u -> a * t > u": "a ball that comes to rest exactly then; held by test_flight.py",
    "functions.adj_flight: a * t >= u -> a * t > u": "a ball that comes to rest exactly then; held by test_flight.py",
}


def check(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)


def check_flight(module: Any) -> None:
    """Check flights of two balls that keep moving, one of them slowly, and one that stops; also without a cloth."""
    for deceleration in (0.4, 0.0):
        v = leaf([[1.3, 0.4], [-0.3, 0.2], [0.1, -0.2]])
        check(module.Flight.apply, (leaf(PLACES), v, leaf(deceleration), leaf(0.8)))


def check_impact(module: Any) -> None:
    x, v = leaf([[0.3, 0.7], [9.0, 9.0], [0.36, 0.62]]), leaf([[1.3, 0.4], [0.5, 0.5], [-0.2, 1.1]])
    check(lambda *inputs: module.Impact.apply(0, 2, *inputs), (x, v, leaf([1.2, 3.0, 0.7]), leaf(0.8)))


def check_bounce(module: Any) -> None:
    check(lambda *inputs: module.Bounce.apply(1, 1, *inputs), (leaf(PLACES), leaf(0.7)))


def check_time_of_impact(module: Any) -> None:
    """Check impacts of two balls, and of a ball and a cushion at either end of an axis."""
    rest = leaf([0.05, 0.04, 0.06]), leaf(0.3), leaf([0.0, 0.1]), leaf([1.0, 0.8])
    for j, toward in ((2, [0.4, 0.3]), (3, [-0.5, 0.1]), (6, [0.1, 0.5])):
        v = leaf([toward, [0.0, 0.0], [0.02, -0.05]])
        check(lambda *x, j=j: module.TimeOfImpact.apply(Billiards(3, 1.0), 0, j, *x), (leaf(PLACES), v, *rest))


def check_rollout(*, all_states: bool) -> None:
    """Check derivatives of a rollout through impacts, three cushions and a rest: of its end, or of all states."""
    model, params, state = busy(dt=0.4)
    mirrored = [leaf(each.data * [-1, 1] + [far, 0]) for each, far in zip(state.tensors(), (1, 0), strict=True)]
    state = State(*mirrored)

    def end(*inputs: Tensor) -> tuple[Tensor, ...]:
        found = rollout(model, *unpack(*inputs), steps=3, keep="all" if all_states else "final")
        chosen = found.states if all_states else found.final
        return tuple(chosen.tensors())

    check(end, leaves(params, state))


def check_adjoint_kernels(module: Any) -> None:
    """Check rollouts that use the adjoint kernels of `module`."""
    with patch.object(engine, "fused_adjoint", module):
        check_rollout(all_states=True)


def check_tangent_kernels(module: Any) -> None:
    """Check rollouts that use the tangent kernels of `module`."""
    with patch.object(engine, "fused_tangent", module):
        check_rollout(all_states=True)


def check_engine(module: Any) -> None:
    """Check rollouts that use the engine of `module`."""
    with use_engine(Billiards, module.BilliardsEngine):
        check_rollout(all_states=False)
        check_rollout(all_states=True)


def sub_step(module: Any, function: str, checked: Callable[[Any], None]) -> Sweep:
    reverse, forward = ("functions.adj_*", "kernels.adjoint"), ("functions.jvp_*", "kernels.tangent")
    methods = f"{function}.backward", f"{function}.jvp"
    return Sweep(module, (*reverse, *forward, *methods), checked, equivalent=EQUIVALENT)


SWEEPS = [
    sub_step(flight, "Flight", check_flight),
    sub_step(impact, "Impact", check_impact),
    sub_step(bounce, "Bounce", check_bounce),
    sub_step(time_of_impact, "TimeOfImpact", check_time_of_impact),
    Sweep(fused_adjoint, ("functions.adj_*",), check_adjoint_kernels, equivalent=EQUIVALENT),
    Sweep(fused_tangent, ("functions.jvp_*",), check_tangent_kernels, equivalent=EQUIVALENT),
    Sweep(
        engine,
        ("BilliardsEngine.pull", "BilliardsEngine.push"),
        check_engine,
        errors=(*ERRORS, TypeError, AttributeError),
        equivalent=EQUIVALENT,
    ),
]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
