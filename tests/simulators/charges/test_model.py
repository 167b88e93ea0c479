"""The model of a system of charges: checks of its input, and its advice."""

from __future__ import annotations

from typing import Any

import pytest

from simphys.autograd import InputError, tensor
from simphys.autograd.errors import UnphysicalValue
from simphys.rollout import Mode, rollout
from simphys.rollout.trajectory import BlowUp
from simphys.simulators.charges import Charges

from .systems import system, two_bodies


def test_an_unknown_integrator_is_refused() -> None:
    with pytest.raises(InputError, match="semi_implicit_euler"):
        Charges(3, 2, 0.1, "leapfrog")


def test_space_has_at_most_three_dimensions() -> None:
    with pytest.raises(InputError, match="1, 2 or 3"):
        Charges(3, 4, 0.1)


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_the_stages_of_a_step_add_up_to_it(integrator: str) -> None:
    stages = Charges(2, 2, 0.1, integrator).stages
    assert sum(stage.kick for stage in stages) == sum(stage.drift for stage in stages) == 0.1


@pytest.mark.parametrize(
    ("integrator", "carried"), [("semi_implicit_euler", []), ("velocity_verlet", ["charge_force"])]
)
def test_forces_are_computed_once_a_step(integrator: str, carried: list[str]) -> None:
    """Velocity Verlet begins a step with the forces that the step before ended with."""
    model, params, state = system(2, integrator=integrator)
    engine: Any = model.engine(params.arrays(), None, batch=1, needs=frozenset({"charge"}), deterministic=False)
    assert [each.name for each in engine.make_plan().carried] == carried
    numbers = engine.segment_bytes(101, dense=False) - engine.segment_bytes(100, dense=False)
    assert numbers == state.position.size * 2 * state.position.data.itemsize, "no history of forces"


def test_shapes_are_those_of_the_fields() -> None:
    model, params, state = system(3, bodies=4)
    assert {name: value.shape for name, value in params.arrays().items()} == model.param_shapes()
    assert {name: value.shape for name, value in state.arrays().items()} == model.state_shapes()


def test_a_motion_that_blows_up_names_the_bodies_that_met() -> None:
    """The rate of the pair is 2 q^2 / s^3 = 8e9 1/s^2; the limit on dt is 2 / sqrt(rate)."""
    model, params, state = two_bodies(1e-3, charge=(2000.0, -2000.0), softening=0.1, dt=1e200)
    with pytest.raises(BlowUp, match=r"bodies 0 and 1.*below 2\.2e-05,"):
        rollout(model, params, state, steps=20)


def test_advice_for_bodies_without_charge() -> None:
    model, params, state = two_bodies(1.0)
    assert "No body acts" in model.advice(params.replace(charge=tensor([0.0, 0.0])).arrays(), state.arrays())


@pytest.mark.parametrize("mode", ["fused", "nested"])
@pytest.mark.parametrize("mass", [0.0, -1.0, float("inf")])
def test_a_mass_that_no_body_has_is_reported_and_a_search_goes_on(mass: float, mode: Mode) -> None:
    model, params, state = system(2)
    with pytest.raises(UnphysicalValue, match=rf"Charges: mass: positive and finite; found mass\[0\] = {mass:g}"):
        rollout(model, params.replace(mass=mass), state, steps=1, mode=mode)
