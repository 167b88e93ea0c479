"""The nested step, as a sequence of sub-steps."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import no_grad
from simphys.simulators.mpm.collider import Collider
from simphys.simulators.mpm.constitutive import Coefficients, respond
from simphys.simulators.mpm.grid import FreeVelocity, constrain
from simphys.simulators.mpm.laws import LAW_PARAMETERS
from simphys.simulators.mpm.step import step

from ...helpers.rounding import assert_equal_but_for_rounding
from . import substeps
from .systems import system


def test_a_step_is_a_chain_of_its_sub_steps() -> None:
    model, params, state, control = system(2, laws=("snow", "fluid"), steps=1)
    assert control is not None
    u = control[0]
    with no_grad():
        c = Coefficients.apply(model, *[getattr(params, name) for name in LAW_PARAMETERS])
        F, q, tau = respond(model, substeps.deform(model, state.affine, state.deformation), state.plastic, c)
        tau = substeps.actuate(model, tau, F, u)
        particle_inputs = state.position, state.velocity, state.affine, tau, params.mass, params.volume
        mass, momentum = [substeps.as_grid(model, values) for values in substeps.to_grid(model, *particle_inputs)]
        free = FreeVelocity.apply(model, mass, momentum, params.gravity, model.mass_floor, model.dt)
        velocity = substeps.as_list(model, constrain(model, free, params.wall_friction, ()))
        x, v, C = substeps.to_particles(model, state.position, velocity)
        new = step(model, params, state, u)
    for name, expected in {"position": x, "velocity": v, "affine": C, "deformation": F, "plastic": q}.items():
        np.testing.assert_array_equal(getattr(new, name).data, expected.data)


def test_the_graph_has_a_node_for_each_sub_step() -> None:
    model, params, state, control = system(2, laws=("snow", "fluid"), steps=1)
    assert control is not None
    new = step(model, params, state, control[0])
    found, front = set(), [new.position.grad_fn, new.plastic.grad_fn]
    while front:
        node = front.pop()
        if node is not None and node not in found:
            found.add(node)
            front += [each for each, _ in node.next_functions]
    names = {node.name().removesuffix("Backward") for node in found}
    assert {"Deform", "Coefficients", "Respond", "FibreStress", "Share", "FreeVelocity", "Stop", "Carry"} <= names


@pytest.mark.parametrize("steered", [False, True])
def test_colliders_move_by_their_velocity_and_what_steers_them(steered: bool) -> None:
    model, params, state, control = system(2, laws=("fluid",), colliders=(Collider("sphere", (0.1,)),), steps=1)
    assert control is not None
    with no_grad():
        new = step(model, params, state, control[0] if steered else None)
    added = control.data[0, 2:] if steered else np.zeros(3)
    h, motion = model.dt, params.collider_velocity.data + added[:2]
    assert_equal_but_for_rounding(new.collider_position.data, state.collider_position.data + h * motion)
    spin = params.collider_spin.data + added[2:]
    assert_equal_but_for_rounding(new.collider_rotation.data, state.collider_rotation.data + h * spin)


def test_a_control_of_no_actuators_is_no_stress() -> None:
    model, params, state, control = system(2, laws=("fluid",), actuators=0, steps=1)
    assert control is not None and control.shape == (1, 0)
    with no_grad():
        with_control, without = step(model, params, state, control[0]), step(model, params, state)
    np.testing.assert_array_equal(with_control.position.data, without.position.data)
