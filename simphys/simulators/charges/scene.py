"""Sections of a scene file for point charges, the arrays that they define, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import Fields, Key, Positive, Problem, Section, Simulator
from simphys.simulators.charges.markers import ChargeMarkers
from simphys.simulators.charges.model import Charges

Vector = Annotated[list[float], Field(min_length=1, max_length=3)]


class ChargesSimulator(Simulator):
    """Options of the simulator.

    integrator: the error of a motion falls with dt by "semi_implicit_euler", and with dt^2 by "velocity_verlet".
    """

    name: Literal["charges"]
    integrator: Literal["semi_implicit_euler", "velocity_verlet"] = "velocity_verlet"


class GeometrySection(Section):
    """Start positions [m] of the bodies."""

    position: Annotated[list[Vector], Field(min_length=1)]


class MaterialSection(Section):
    """Properties of the bodies: charge [C] and mass [kg], one number for all, or a list with one for each body.

    coupling [N m^2/C^2]: the force between two unit charges at unit distance; softening [m]: the length below which the
    force falls off.
    """

    charge: float | list[float]
    mass: Positive | list[Positive] = 1.0
    coupling: float = 1.0
    softening: Positive


class StateSection(Section):
    """Start velocity [m/s] of each body; at rest by default."""

    velocity: list[Vector] | None = None


def build_fields(config: Any) -> Fields:
    """Expand every parameter field and state component to full length."""
    geometry, material, state = config.geometry, config.material, config.state
    position = np.array(geometry.position, dtype=float)
    n = len(position)
    velocity = np.zeros_like(position) if state.velocity is None else np.array(state.velocity, dtype=float)
    params = {
        "charge": np.broadcast_to(np.asarray(material.charge, dtype=float), (n,)).copy(),
        "mass": np.broadcast_to(np.asarray(material.mass, dtype=float), (n,)).copy(),
        "coupling": np.array(material.coupling),
        "softening": np.array(material.softening),
    }
    state = {"position": position, "velocity": velocity}
    return Fields(params=params, state=state, nodes=n, markers=ChargeMarkers(*position.shape))


def build_model(config: Any) -> Charges:
    """Build the model of a validated scene."""
    position = config.geometry.position
    return Charges(len(position), len(position[0]), config.time.dt, config.simulator.integrator)


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Collect all problems. A section that is itself invalid is None; checks that depend on it are skipped."""
    geometry: GeometrySection | None = sections.get("geometry")
    material: MaterialSection | None = sections.get("material")
    state: StateSection | None = sections.get("state")
    if geometry is None:
        return []
    n, dim = len(geometry.position), len(geometry.position[0])
    found = list(_check_rows(("geometry", "position"), geometry.position, dim))
    for name in ("charge", "mass"):
        value = getattr(material, name, None)
        if isinstance(value, list):
            found += _check_length(("material", name), value, n, "body")
    if state is not None and state.velocity is not None:
        found += _check_length(("state", "velocity"), state.velocity, n, "body")
        found += _check_rows(("state", "velocity"), state.velocity, dim)
    return found


def _check_rows(key: Key, rows: list[list[float]], dim: int) -> Iterator[Problem]:
    for body, row in enumerate(rows):
        yield from _check_length((*key, body), row, dim, "axis of the first body's position")


def _check_length(key: Key, value: list[Any], count: int, what: str) -> Iterator[Problem]:
    if len(value) != count:
        constraint = f"must have {count} elements, one for each {what}"
        yield Problem(key=key, constraint=constraint, found=value, remedy=f"It has {len(value)}: give {count}.")
