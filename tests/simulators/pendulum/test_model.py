"""The models of pendulums: checks of their input, and their advice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import InputError, tensor
from simphys.autograd.errors import UnphysicalValue
from simphys.rollout import Mode, rollout
from simphys.rollout.trajectory import BlowUp
from simphys.simulators.pendulum import Chain, Spherical
from simphys.simulators.pendulum.chain import Params

from .chains import chain
from .sphericals import spherical


@pytest.mark.parametrize("made", [lambda: Chain(2, 0.1, "euler"), lambda: Spherical(0.1, "euler")])
def test_an_unknown_integrator_is_refused(made: object) -> None:
    with pytest.raises(InputError, match="variational"):
        made()  # type: ignore[operator]


def test_a_chain_has_links() -> None:
    with pytest.raises(InputError, match="at least 1"):
        Chain(0, 0.1)


def test_shapes_are_those_of_the_fields() -> None:
    for model, params, state in (chain(4), spherical()):
        assert {name: value.shape for name, value in params.arrays().items()} == model.param_shapes()
        assert {name: value.shape for name, value in state.arrays().items()} == model.state_shapes()


def test_a_chain_that_blows_up_names_the_fastest() -> None:
    """Strong damping decays at the rate c / (m l^2) = 1e3 /s, too fast for steps of 0.1 s."""
    model, params, state = chain(1, dt=0.1, length=1.0, mass=1.0, centre=1.0, inertia=0.0, damping=1e3, rate=1.0)
    with pytest.raises(BlowUp, match=r"fastest.*dt is 0\.1\."):
        rollout(model, params, state, steps=200)
    assert "decay by damping has a rate of 1e+03:" in model.advice(params.arrays(), state.arrays())


def test_a_variational_step_too_long_ends_the_motion() -> None:
    model, params, state = chain(2, "variational", dt=0.5, seed=7)
    with pytest.raises(BlowUp, match="Lower dt"):
        rollout(model, params, state, steps=10)


def test_a_spherical_pendulum_that_turns_too_far_in_a_step_ends() -> None:
    model, params, state = spherical("variational", dt=0.5)
    fast = state.replace(rate=tensor(5 * state.rate.data))
    with pytest.raises(BlowUp, match="fastest rotation"):
        rollout(model, params, fast, steps=3)
    still = {name: 0 * values for name, values in state.arrays().items()}
    assert "swing" in model.advice({**params.arrays(), "damping": np.array(0.0)}, still)


@pytest.mark.parametrize("value", [0.0, -1.0])
@pytest.mark.parametrize("name", ["length", "mass"])
def test_an_unphysical_pendulum_is_reported_and_a_search_goes_on(name: str, value: float) -> None:
    (model, params, state), (other, its, start) = chain(2), spherical()
    mode: Mode
    for mode in ("fused", "nested"):
        with pytest.raises(UnphysicalValue, match=rf"{name}: positive and finite; found {name}\[1\] = {value:g}\."):
            rollout(model, params.replace(**{name: tensor([1.0, value])}), state, steps=1, mode=mode)
        with pytest.raises(UnphysicalValue, match=rf"{name}: positive and finite; found {name} = {value:g}\."):
            rollout(other, its.replace(**{name: tensor(value)}), start, steps=1, mode=mode)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"transition_rate": [0.1, 0.0]},
            r"transition_rate: positive and finite; found transition_rate\[1\] = 0",
        ),
        ({"inertia": [0.1, -0.2]}, r"inertia: 0 or more, and finite; found inertia\[1\] = -0.2"),
        (
            {"inertia": 0.0, "centre": [1.0, 0.0]},
            r"centre: a link has an inertia about its joint",
        ),
    ],
)
def test_an_unphysical_link_or_joint_is_reported(change: dict[str, Any], message: str) -> None:
    model, params, state = chain(2, friction=True)
    with pytest.raises(UnphysicalValue, match=message):
        rollout(model, params.replace(**change), state, steps=1)


def test_a_chain_without_friction_takes_none() -> None:
    model, params, state = chain(2)
    with pytest.raises(InputError, match="drag"):
        rollout(model, params.replace(drag=tensor([0.1, 0.1])), state, steps=1)


def test_links_are_point_masses_at_their_ends_by_default() -> None:
    params = Params(*[tensor(each) for each in ([1.0, 2.0], [1.0, 1.0], [0.0, 0.0], 9.8, 0.0)])
    assert params.centre.data.tolist() == [1.0, 1.0] and params.inertia.data.tolist() == [0.0, 0.0]


def test_friction_that_blows_up_a_step_is_named() -> None:
    model, params, state = chain(1, dt=0.1, friction=True, dry_friction=5.0, transition_rate=1e-3)
    assert "decay by damping" in model.advice(params.arrays(), state.arrays())


@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
@pytest.mark.parametrize("integrator", ["rk4", "variational"])
def test_a_direction_that_is_not_of_length_1_is_refused(integrator: str, mode: Mode) -> None:
    """A direction of twice the length would turn too fast: for ever with variational, for one step with rk4."""
    model, params, state = spherical(integrator)
    with pytest.raises(UnphysicalValue, match=r"spherical pendulum: direction: of length 1; found a length of 2\."):
        rollout(model, params, state.replace(direction=2 * state.direction.detach()), steps=1, mode=mode)
    nearly = state.replace(direction=1.01 * state.direction.detach())
    assert np.isfinite(rollout(model, params, nearly, steps=1, mode=mode).final.rate.data).all()
