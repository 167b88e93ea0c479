"""Every term in the derivatives of billiards is needed: of the element functions, and of the loops between impacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.billiards import bounce, flight, impact, search, time_of_impact

from ..simulators.billiards import alone
from ..simulators.billiards.tables import leaf
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 2
"""Number of mutants per rule in a sample: most compile a kernel."""

PLACES = [[0.3, 0.4], [0.9, 0.9], [0.6, 0.62]]

EQUIVALENT = {
    "*_flight: a > 0 -> a >= 0": "at a = 0 both forms of a ball at rest are 0, or it moves",
    "adj_*: u > 0 -> u >= 0": "a direction times 0",
    "*: a * t >= u -> a * t > u": "a ball that comes to rest exactly then; held by test_flight.py",
}


def check(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)
    dot_product_test(function, inputs, tolerance=1e-11)


def check_flight(module: Any) -> None:
    """Check flights of two balls that keep moving, one of them slowly, and one that stops; also without a cloth."""
    for deceleration in (0.4, 0.0):
        v = leaf([[1.3, 0.4], [-0.3, 0.2], [0.1, -0.2]])
        check(lambda *x: module.Flight.apply(None, *x), (leaf(PLACES), v, leaf(deceleration), leaf(0.8)))


def check_impact(module: Any) -> None:
    pairs = [[0.3, 0.7]], [[1.3, 0.4]], [[0.36, 0.62]], [[-0.2, 1.1]], [1.2], [0.7], 0.8
    check(lambda *x: alone.make_impact(module.impact).apply(None, *x), tuple([leaf(each) for each in pairs]))


def check_bounce(module: Any) -> None:
    for side in (1, 2):
        made = alone.make_bounce(module.bounce)
        check(lambda *x, side=side, made=made: made.apply(None, *x, side), (leaf(PLACES), leaf(0.7)))


def check_time_of_impact(module: Any) -> None:
    """Check times of impact of two balls, and of a ball and a cushion at either end of an axis."""
    options = 2.0, 1e-3, search.rounding()
    pair = [[0.3, 0.4]], [[0.4, 0.3]], [0.05], [[0.6, 0.62]], [[-0.2, -0.25]], [0.06], 0.3
    made = alone.make_time_of_impact(module.time_of_impact)
    check(lambda *x: made.apply(None, *x, *options)[0], tuple([leaf(each) for each in pair]))
    made = alone.make_time_of_bounce(module.time_of_bounce)
    for side, toward in ((0, [-0.5, 0.1]), (3, [0.1, 0.5])):
        ball = [[0.3, 0.4]], [toward], [0.05], 0.3, [0.0, 0.1], [1.0, 0.8]
        check(
            lambda *x, side=side: made.apply(None, *x, side, *options)[0],
            tuple([leaf(each) for each in ball]),
        )


SWEEPS = [
    Sweep(flight, ("adj_flight", "adj_place"), check_flight, equivalent=EQUIVALENT),
    Sweep(impact, ("adj_impact",), check_impact),
    Sweep(bounce, ("adj_bounce",), check_bounce),
    Sweep(
        time_of_impact,
        ("adj_time_of_impact", "jvp_time_of_impact", "adj_time_of_bounce", "jvp_time_of_bounce", "approach"),
        check_time_of_impact,
    ),
]
