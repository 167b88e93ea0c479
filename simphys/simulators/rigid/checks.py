"""Checks of a model of rigid bodies and of its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.simulator import Arrays
from simphys.simulator.physical import require_positive

from .joints.joint import PRISMATIC, REVOLUTE, WORLD, Joint, Spring
from .shapes import Box, Vector

IMPULSE, COMPLIANT = LAWS = ("impulse", "compliant")
SLACK = 0.01
"""Tolerance by which friction and restitution may exceed their range: finite differences at its ends need it."""


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue for values that no body can have.

    Masses, moments of inertia and transition rates must be positive and finite, friction not negative, restitution
    between 0 and 1. SLACK applies to the last two.
    """
    require_positive("rigid", params, {"joint_transition_rate": "rad/s or m/s"})
    units = {"mass": "kg", "inertia": "kg m^2"}
    require_positive("rigid", params, units, instead="To hold a body, name it in `fixed`")
    for name, most, constraint, bounds in (
        ("friction", np.inf, "not negative", "[0, inf]"),
        ("restitution", 1.0, "between 0 and 1", "[0, 1]"),
    ):
        values = np.ravel(params[name])
        wrong = values[~((values >= -SLACK) & (values <= most + SLACK))]
        if wrong.size:
            remedy = f"Give a valid one; give an unknown bounds = {bounds}."
            raise UnphysicalValue(f"rigid: {name}", constraint, f"{wrong[0]:g}", remedy)


def check(model: Any) -> None:
    """Raise InputError for the first mistake in a model."""
    for name, value, allowed in (("dim", model.dim, (2, 3)), ("law", model.law, LAWS)):
        if value not in allowed:
            raise InputError(f"RigidBodies.{name}", f"one of {allowed}", value, "Choose one of these.")
    if not model.shapes:
        raise InputError("RigidBodies.shapes", "at least one body", "none", "Give the shapes of each body.")
    for name, number in (("dt", model.dt), ("sweeps", model.sweeps), ("slip_speed", model.slip_speed)):
        if not number > 0:
            raise InputError(f"RigidBodies.{name}", "positive", number, "Give a positive value.")
    for body, own in enumerate(model.shapes):
        for shape in own:
            _check_length(f"the offset of a shape of body {body}", shape.offset, model.dim)
            if isinstance(shape, Box):
                _check_length(f"the half extents of a box of body {body}", shape.half, model.dim)
    for plane in model.planes:
        _check_length("the normal of a plane", plane.normal, model.dim)
    for body in (*model.fixed, *(body for pair in model.apart for body in pair)):
        _check_body("RigidBodies.fixed, apart", body, model)
    for a, b in model.apart:
        if a == b:
            raise InputError("RigidBodies.apart", "pairs of two bodies", f"body {a} twice", "Name another or drop it.")
    for index, joint in enumerate(model.joints):
        _check_link(f"joint {index}", joint, model)
        _check_joint(f"joint {index}", joint, model)
    for index, spring in enumerate(model.springs):
        _check_link(f"spring {index}", spring, model)
    if model.controller is not None:
        if not model.motors:
            raise InputError("RigidBodies.controller", "drives motors", "no motor", "Add a motor to a joint.")
        _check_length("the controller's goal", model.controller.goal, model.dim)


def _check_link(subject: str, link: Joint | Spring, model: Any) -> None:
    _check_body(subject, link.a, model)
    if link.b != WORLD:
        _check_body(subject, link.b, model)
    _check_length(f"anchor_a of {subject}", link.anchor_a, model.dim)
    _check_length(f"anchor_b of {subject}", link.anchor_b, model.dim)


def _check_joint(subject: str, joint: Joint, model: Any) -> None:
    _check_length(f"relative of {subject}", joint.relative, model.rotations)
    _check_length(f"axis of {subject}", joint.axis, model.dim)
    needs_axis = joint.kind == PRISMATIC or (joint.kind == REVOLUTE and model.dim == 3)
    if needs_axis != (joint.axis is not None):
        constraint = "an axis" if needs_axis else "no axis"
        raise InputError(
            f"rigid: {subject}", constraint, str(joint.axis), f"The joint is {joint.kind}, in {model.dim} dimensions."
        )
    if joint.axis is not None and not abs(sum([each * each for each in joint.axis]) - 1) < 1e-9:
        raise InputError(f"rigid: the axis of {subject}", "a unit vector", joint.axis, "Divide it by its length.")


def _check_body(subject: str, body: int, model: Any) -> None:
    if not 0 <= body < model.bodies:
        raise InputError(f"rigid: {subject}", f"a body from 0 to {model.bodies - 1}", body, "Name an existing body.")


def _check_length(subject: str, vector: Vector | None, count: int) -> None:
    if vector is not None and len(vector) != count:
        raise InputError(f"rigid: {subject}", f"{count} numbers", vector, f"It has {len(vector)}.")
