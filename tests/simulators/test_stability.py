"""The advised time step: a run with it stays bounded, one of 1.6 times the limit is refused, and blows up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import no_grad, tensor
from simphys.autograd.errors import InputError
from simphys.rollout import BlowUp, rollout
from simphys.rollout.stability import find_largest_dt, require_stable_step

from ..helpers.time_steps import largest_stable_dt
from .test_contract import CONTRACTS

STEPS = 200
BOUNDED = ("elastic", "heat", "mass_spring", "mpm", "rigid", "shallow", "smoke", "sph", "wave")
"""Simulators that refuse a time step at the start; `molecular` does so for single pairs."""
EXPLODING = ("elastic", "heat", "mass_spring", "wave")
"""Those whose limit is sharp for this system; the others bound what a motion may come to."""


def build(name: str) -> tuple[Any, Any, Any]:
    """Build the first system of a simulator's contract, with noise in its start."""
    model, params, state, _ = CONTRACTS[name].modes[0].system()
    random = np.random.default_rng(3)
    noise = {key: x + 1e-6 * random.standard_normal(x.shape) for key, x in state.arrays().items()}
    return model, params, state.replace(**{key: tensor(values) for key, values in noise.items()})


@pytest.mark.parametrize("name", BOUNDED)
def test_a_longer_step_is_refused_and_the_advised_one_is_taken(name: str) -> None:
    model, params, state = build(name)
    limit = largest_stable_dt(model, params, state)
    assert 0 < limit < np.inf
    with pytest.raises(InputError, match=r"time\.dt: the largest stable time step .* Set time\.dt to") as caught:
        require_stable_step(replace(model, dt=1.6 * limit), params, state)
    advised = float(caught.value.remedy.split()[3])
    assert 0.8 * limit < advised < limit
    require_stable_step(replace(model, dt=advised), params, state)


@pytest.mark.parametrize("name", EXPLODING)
def test_the_advised_step_stays_bounded_and_a_longer_one_blows_up_and_says_why(name: str) -> None:
    model, params, state = build(name)
    limit = largest_stable_dt(model, params, state)
    with no_grad():
        final = rollout(replace(model, dt=0.9 * limit), params, state, steps=STEPS, keep="final").final
        assert max(np.abs(values).max(initial=0.0) for values in final.arrays().values()) < 1e6
        with pytest.raises(BlowUp, match=r"Lower time\.dt below \S+, the largest stable step at the start"):
            rollout(replace(model, dt=1.6 * limit), params, state, steps=10 * STEPS, keep="final")


@pytest.mark.parametrize("name", ["charges", "molecular"])
def test_the_tangent_finds_a_limit_where_a_simulator_knows_none(name: str) -> None:
    model, params, state = build(name)
    found = find_largest_dt(replace(model, dt=1e3), params.arrays(), state.arrays())
    assert 0 < found < 1e3
    assert find_largest_dt(replace(model, dt=0.9 * found), params.arrays(), state.arrays()) == np.inf
