"""Distance and angle by which poses of bodies differ from those that a joint allows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simphys.numerics.orientation import matrices
from simphys.simulator import Array

from .joint import PRISMATIC, REVOLUTE, WORLD, Joint


def find_gap(joint: Joint, state: Mapping[str, Array]) -> tuple[float, float]:
    """Return the distance of the anchors [m] and the angle between the frames [rad].

    The distance along a slide, and the angle about an axis, count for nothing. `state` has the position [n, dim] and
    the orientation [n, R] of all bodies.
    """
    (x_a, R_a), (x_b, R_b) = (_pose(body, state) for body in (joint.a, joint.b))
    apart = x_a + R_a @ np.array(joint.anchor_a) - x_b - R_b @ np.array(joint.anchor_b)
    axis = None if joint.axis is None else np.array(joint.axis)
    if joint.kind == PRISMATIC and axis is not None:
        apart = apart - (apart @ (R_a @ axis)) * (R_a @ axis)
    wanted = R_a if joint.relative is None else R_a @ matrices(np.array(joint.relative))
    if joint.kind == REVOLUTE:
        turned = 0.0 if axis is None else _angle(R_a @ axis, R_b @ wanted.T @ R_a @ axis)
    else:
        turned = max([_angle(column, other) for column, other in zip(wanted.T, R_b.T, strict=True)])
    return float(np.linalg.norm(apart)), turned


def _pose(body: int, state: Mapping[str, Array]) -> tuple[Array, Array]:
    if body == WORLD:
        dim = state["position"].shape[1]
        return np.zeros(dim), np.eye(dim)
    return state["position"][body], matrices(state["orientation"][body])


def _angle(a: Array, b: Array) -> float:
    """Return the angle between two unit vectors."""
    return float(2 * np.arcsin(np.clip(np.linalg.norm(a - b) / 2, 0.0, 1.0)))
