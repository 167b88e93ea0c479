"""Checks of a model of rigid bodies and of its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.simulator import Array, Arrays
from simphys.simulator.arrays import element_name
from simphys.simulator.model_checks import (
    is_count,
    read_counts,
    require_counts,
    require_not_negative_fields,
    require_positive_fields,
)
from simphys.simulator.physical import require_positive

from .joints.joint import PRISMATIC, REVOLUTE, WORLD, Joint, Spring
from .pseudo_inertia import MATTER, are_matter
from .shapes import Box, Shape, Vector

IMPULSE, COMPLIANT = LAWS = ("impulse", "compliant")
SLACK = 0.01
"""Tolerance by which friction and restitution may exceed their range: finite differences at its ends need it."""


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue for values that no body can have.

    Masses and moments of inertia must be positive and finite, friction not negative, restitution between 0 and 1. SLACK
    applies to the last two.
    """
    inertia = np.asarray(params["inertia"])
    is_full = inertia.shape[-1] == 6
    names = ("mass",) if is_full else ("mass", "inertia")
    require_positive("rigid", params, *names, instead="To hold a body, name it in `fixed`")
    if is_full:
        _check_tensors(inertia)
    for name, most, constraint, bounds in (
        ("friction", np.inf, "not negative", "[0, inf]"),
        ("restitution", 1.0, "between 0 and 1", "[0, 1]"),
    ):
        values = np.ravel(params[name])
        wrong = values[~((values >= -SLACK) & (values <= most + SLACK))]
        if wrong.size:
            remedy = f"Give a valid one; give an unknown bounds = {bounds}."
            raise UnphysicalValue(f"rigid: {name}", constraint, f"{wrong[0]:g}", remedy)


def _check_tensors(inertia: Array) -> None:
    """Check that full tensors of inertia are those of matter: their second moments are not negative."""
    flat = inertia.reshape(-1, 6)
    found = flat[~np.isfinite(flat).all(axis=1)]
    if not found.size:
        found = flat[~are_matter(flat)]
    if found.size:
        remedy = "Correct xx, yy, zz, yz, xz and xy; seek `gyration`, which always is that of matter."
        raise UnphysicalValue("rigid: inertia", MATTER, found[0].tolist(), remedy)


def check_state(state: Arrays) -> None:
    """Raise UnphysicalValue for a quaternion without length, with a batch axis or without; others are normalized."""
    orientation = state["orientation"]
    if orientation.shape[-1] == 4:
        without = ~orientation.any(axis=-1)
        if without.any():
            index = tuple(np.argwhere(without)[0].tolist())
            remedy = "Give (1, 0, 0, 0) for a body that is not turned."
            found = f"{element_name('orientation', index)} = (0, 0, 0, 0)"
            raise UnphysicalValue("rigid: orientation", "a quaternion has a length", found, remedy)


def check(model: Any) -> None:
    """Raise InputError for the first mistake in a model."""
    _check_numbers(model)
    _check_shapes(model)
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


def _check_numbers(model: Any) -> None:
    """Raise InputError for a wrong number, and make counts ints."""
    require_counts(model, dim=2, sweeps=1)
    object.__setattr__(model, "fixed", read_counts("RigidBodies.fixed", model.fixed))
    require_positive_fields(model, "slip_speed")
    require_not_negative_fields(model, "rest_speed", "joint_correction")
    for name, value, allowed in (("dim", model.dim, (2, 3)), ("law", model.law, LAWS)):
        if value not in allowed:
            raise InputError(f"RigidBodies.{name}", f"one of {allowed}", value, "Choose one of these.")


def _check_shapes(model: Any) -> None:
    """Raise InputError for shapes that are not listed by body, or not in the dimensions of space; make them tuples."""
    given = model.shapes
    if not isinstance(given, tuple | list) or not given:
        raise InputError("RigidBodies.shapes", "at least one body", given or "none", "Give the shapes of each body.")
    for body, own in enumerate(given):
        if not isinstance(own, tuple | list) or not all([isinstance(each, Shape) for each in own]):
            remedy = f"Write ({own!r},) for its only shape." if isinstance(own, Shape) else "Give Box, Sphere, Capsule."
            constraint = "a tuple of the shapes of each body, which may be empty"
            raise InputError(f"RigidBodies.shapes[{body}]", constraint, own, remedy)
    object.__setattr__(model, "shapes", tuple([tuple(own) for own in given]))
    for body, own in enumerate(model.shapes):
        for shape in own:
            _check_length(f"the offset of a shape of body {body}", shape.offset, model.dim)
            if isinstance(shape, Box):
                _check_length(f"the half extents of a box of body {body}", shape.half, model.dim)
    for plane in model.planes:
        _check_length("the normal of a plane", plane.normal, model.dim)


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
    if joint.relative is not None and model.dim == 3 and not any(joint.relative):
        remedy = "Give (1, 0, 0, 0), or None, if the frames agree."
        raise InputError(f"rigid: relative of {subject}", "a quaternion has a length", joint.relative, remedy)
    if joint.axis is not None and not abs(sum([each * each for each in joint.axis]) - 1) < 1e-9:
        raise InputError(f"rigid: the axis of {subject}", "a unit vector", joint.axis, "Divide it by its length.")


def _check_body(subject: str, body: int, model: Any) -> None:
    if not is_count(body) or not 0 <= body < model.bodies:
        raise InputError(f"rigid: {subject}", f"a body from 0 to {model.bodies - 1}", body, "Name an existing body.")


def _check_length(subject: str, vector: Vector | None, count: int) -> None:
    if vector is not None and len(vector) != count:
        raise InputError(f"rigid: {subject}", f"{count} numbers", vector, f"It has {len(vector)}.")
    if vector is not None and not np.isfinite(vector).all():
        raise InputError(f"rigid: {subject}", "all numbers are finite", vector, "Correct it.")
