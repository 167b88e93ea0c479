"""Checks for targets that no body can reach: behind a plane, or away from a fixed body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from simphys.scenefile.section import Key, Problem, rows_of
from simphys.simulators.rigid.scene import centre_of, orientation, plane_of, shapes_of
from simphys.simulators.rigid.sections import BodySection, PlaneSection
from simphys.simulators.rigid.shapes import Plane, core_of

AT_END = ("final_state", "final_mean")
ROUNDING = 1e-9


def problems(
    bodies: Sequence[BodySection], planes: Sequence[PlaneSection], terms: Sequence[Any], *, is_hard: bool
) -> Iterator[Problem]:
    """Yield the problems of terms about single bodies at the end; other checks report other mistakes in a term.

    With hard contacts, a centre keeps a distance from a plane: the radius of the largest sphere about it within its
    shapes. With compliant contacts, it stays in front of the plane.
    """
    for place, term in enumerate(terms):
        key: Key = ("loss", "terms", place, "target")
        name, target = getattr(term, "field", None), getattr(term, "target", None)
        if term.kind not in AT_END or name not in ("position", "orientation") or isinstance(target, str | None):
            continue
        try:
            chosen = np.arange(len(bodies))[slice(None) if term.nodes is None else rows_of(term.nodes)]
            wanted = _rows(term, len(chosen))
        except (ValueError, IndexError):
            continue
        if term.kind == "final_mean" and len(chosen) > 1:
            continue
        for body, row in zip(chosen.tolist(), wanted, strict=True):
            if reason := _explain_unreachable(bodies[body], name, row, term.axis, planes, is_hard=is_hard):
                constraint = f"unreachable target: body {body} {reason}"
                remedy = "Give a target that the body can reach, or other nodes."
                yield Problem(key=key, constraint=constraint, found=target, remedy=remedy)
                break


def inner_radius(body: BodySection) -> float:
    """Return the radius of the largest sphere about the centre of mass within one of its shapes [m], or 0."""
    found = [0.0]
    for shape in shapes_of(body):
        core = core_of(shape, len(body.position))
        offset = core.centre - centre_of(body)
        if core.radius:
            found.append(core.radius - float(np.linalg.norm(offset - np.clip(offset, -core.half, core.half))))
        else:
            found.append(float((core.half - abs(offset)).min()))
    return max(found)


def _rows(term: Any, count: int) -> np.ndarray[Any, Any]:
    """Return the target of each body, [count, components]."""
    target = np.asarray(term.target, dtype=float)
    if term.axis is not None:
        return np.broadcast_to(target.reshape(-1, 1), (count, 1))
    return np.broadcast_to(target, (count, target.shape[-1]))


def _explain_unreachable(
    body: BodySection,
    name: str,
    target: np.ndarray[Any, Any],
    axis: int | None,
    planes: Sequence[PlaneSection],
    *,
    is_hard: bool,
) -> str:
    """Explain why a body cannot reach a target; '' if it can, or if that is unknown."""
    start = np.array(body.position) if name == "position" else orientation(body)
    initial = start if axis is None else start[axis : axis + 1]
    if len(initial) != len(target):
        return ""
    if body.fixed:
        at_rest = not np.any(body.velocity or 0.0) and not np.any(body.angular_velocity or 0.0)
        return f"is fixed at {initial.tolist()}" if at_rest and abs(initial - target).max() > ROUNDING else ""
    min_height = inner_radius(body) if is_hard else 0.0
    for place, plane in enumerate([plane_of(each) for each in planes] if name == "position" and body.shapes else []):
        height = _height(plane, target, axis)
        if height is not None and height < min_height - ROUNDING * (1 + min_height):
            return f"stays {min_height:.3g} or more in front of plane {place}, and this is {height:.3g}"
    return ""


def _height(plane: Plane, target: np.ndarray[Any, Any], axis: int | None) -> float | None:
    """Return the height of a target above a plane; None if its given component does not determine it."""
    normal = np.array(plane.normal)
    if axis is None:
        return float(normal @ target) - plane.offset
    return float(normal[axis] * target[0]) - plane.offset if abs(normal[axis]) > 1 - ROUNDING else None
