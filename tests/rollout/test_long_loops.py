"""Loops over time on a GPU: they are cut before a driver ends them, and one that it ended is an error."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.rollout import rollout
from simphys.rollout.engine import generated_engine
from simphys.rollout.engine.arrays import make_rows, read_rows
from simphys.rollout.engine.repeated import Launches
from simphys.substep.program import Domain, ElementView, Value

from ..simulators.mass_spring.systems import system

STEPS = 8000
"""Steps of more rounds in all than LOOP_ROUNDS."""


def move(**options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Last position, and the gradient of its sum by the stiffness."""
    model, params, state = system(2, nodes=3, springs=3)
    params = params.replace(stiffness=params.stiffness.detach().requires_grad_())
    final = rollout(model, params, state, steps=STEPS, keep="final", **options).final
    final.position.sum().backward()
    assert params.stiffness.grad is not None
    return final.position.data, params.stiffness.grad.data


@pytest.mark.gpu
def test_a_loop_over_time_is_right_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    position, gradient = move()
    assert np.isfinite(gradient).all() and gradient.any()
    monkeypatch.setattr(generated_engine, "LOOP_ROUNDS", 10**9)
    try:
        whole, whole_gradient = move()
    except InputError as error:  # Mesa's software driver ends the loops of a thread after 65,535 rounds
        assert runtime.settings().on_gpu
        assert "its driver ended a loop after step" in str(error)
    else:
        tolerance = 1e-3 if position.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(whole, position, rtol=tolerance)
        np.testing.assert_allclose(whole_gradient, gradient, rtol=0, atol=tolerance * abs(gradient).max())


@pytest.mark.parametrize("backward", [False, True])
def test_a_launch_that_ends_early_is_an_error(backward: bool) -> None:
    """Each launch moves the mark of a member from its first row to its last, or leaves it where it is."""
    finished = np.zeros(2, np.int32)

    def launch(first: int, begin: int, end: int, *, broken: int = -1) -> None:
        start, goal = (end, begin) if backward else (begin, end)
        for member in range(2):
            if finished[member] == start and (member, begin) != (1, broken):
                finished[member] = goal

    rows = [(0, 10), (10, 20), (20, 25)]
    Launches([launch], finished).run(100, rows, backward=backward)
    with pytest.raises(InputError, match=f"ended a loop of batch member 1 after step {120 if backward else 110}"):
        Launches([functools.partial(launch, broken=10)], finished).run(100, rows, backward=backward)


@pytest.mark.gpu
def test_rows_that_nobody_wrote_are_not_numbers_on_a_gpu() -> None:
    value = Value("x", (3, 2), "local", ElementView(Domain("nodes", 3), (2,)))
    rows = make_rows(value, 4)
    found = read_rows(rows, value, 1, 4, slice(None))
    assert not runtime.settings().on_gpu or np.isnan(found).all()
