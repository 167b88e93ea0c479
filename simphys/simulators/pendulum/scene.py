"""Sections of a scene file for pendulums, the arrays that they define, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import NOTHING, Fields, Key, NonNegative, Positive, Problem, Section, Simulator
from simphys.simulators.pendulum.chain import Chain
from simphys.simulators.pendulum.chain.markers import ChainMarkers
from simphys.simulators.pendulum.spherical import Spherical
from simphys.simulators.pendulum.spherical.markers import SphericalMarkers

Vector = Annotated[list[float], Field(min_length=3, max_length=3)]
Lengths = Annotated[list[Positive], Field(min_length=1)]


class PendulumSimulator(Simulator):
    """Options of the simulator.

    kind: a chain of links in the plane, or one spherical pendulum. integrator: rk4, of order 4; or variational, of
    order 2, whose energy error stays bounded for all times without damping and torques. drive: what the control of a
    chain means: torques in its "joints" [N m], one each, or the acceleration of its "pivot", the first joint [m/s^2]:
    across and against the direction of the angle 0. Markers are then places relative to the pivot; with rk4 only.
    """

    name: Literal["pendulum"]
    kind: Literal["chain", "spherical"] = "chain"
    integrator: Literal["rk4", "variational"] = "rk4"
    drive: Literal["joints", "pivot"] = "joints"


class GeometrySection(Section):
    """Link lengths [m]: for a chain, a list from the support to the free end; for a spherical pendulum, a number."""

    length: Positive | Lengths


class MaterialSection(Section):
    """Properties of links and joints, each a number or a list.

    mass [kg] of each link, and damping [N m s/rad] of each joint.
    A link is a point mass at its end, unless a chain has a centre [1], that of mass in parts of the length from the
    upper joint (a rod has 0.5, the end is 1), or an inertia [kg m^2] about it (a rod has mass length^2 / 12).
    dry_friction [N m]: of each joint of a chain, Coulomb's, as the torque (2/pi) dry_friction atan(rate /
    transition_rate) against its rotation. transition_rate [rad/s]: within some of it, dry friction changes its sign;
    0.1 by default; a fit of friction needs one far below the rates of the motion. A published model F atan(100 rate)
    has dry_friction = pi F / 2 and transition_rate = 0.01.
    drag [N m s^2/rad^2]: of the air on each link of a chain, as the torque drag |rate| rate against its rotation.
    These three take time only where one of them is given or unknown.
    """

    mass: Positive | list[Positive] = 1.0
    damping: NonNegative | list[NonNegative] = 0.0
    centre: float | list[float] | None = None
    inertia: NonNegative | list[NonNegative] | None = None
    dry_friction: NonNegative | list[NonNegative] | None = None
    transition_rate: Positive | list[Positive] | None = None
    drag: NonNegative | list[NonNegative] | None = None


class EnvironmentSection(Section):
    """Gravity and its direction.

    gravity [m/s^2]: a number, pointing down (for a spherical pendulum, against the third axis), or a vector for a
    spherical pendulum. tilt [rad]: the angle at which a chain hangs at rest.
    """

    gravity: float | Vector = 9.81
    tilt: float = 0.0


class StateSection(Section):
    """Initial state.

    For a chain: angle [rad] and rate [rad/s] of each link, measured from a common direction rather than from the link
    before; 0 by default. For a spherical pendulum: direction [1] from the support to the mass, a vector of any
    length; and rate [rad/s], the vector of angular velocity, perpendicular to the direction and 0 by default.
    """

    angle: list[float] | None = None
    direction: Vector | None = None
    rate: list[float] | None = None


FRICTION = {"dry_friction": 0.0, "transition_rate": 0.1, "drag": 0.0}
"""Properties by which a chain has friction, with their values where they are not given."""

OF_LINKS = {"mass": 1.0, "damping": 0.0, "centre": 1.0, "inertia": 0.0}
"""Likewise, of any chain."""

OF_CHAINS = ("centre", "inertia", *FRICTION)
"""Properties that a spherical pendulum lacks."""

PERPENDICULAR = 1e-9
"""Largest relative component of the initial rate along the link."""


def build_fields(config: Any) -> Fields:
    """Expand every parameter field and state component to full length."""
    geometry, material, environment, state = config.geometry, config.material, config.environment, config.state
    if config.simulator.kind == "spherical":
        gravity = environment.gravity
        direction = np.array(state.direction, dtype=float)
        params = {
            "length": np.array(geometry.length),
            "mass": np.array(material.mass),
            "damping": np.array(material.damping),
            "gravity": np.array(gravity if isinstance(gravity, list) else [0.0, 0.0, -gravity]),
        }
        rate = np.zeros(3) if state.rate is None else np.array(state.rate, dtype=float)
        return Fields(
            params=params,
            state={"direction": direction / np.linalg.norm(direction), "rate": rate},
            channels=3,
            markers=SphericalMarkers(),
        )
    length = np.atleast_1d(np.array(geometry.length, dtype=float))
    n = len(length)
    params = {"length": length, "gravity": np.array(environment.gravity), "tilt": np.array(environment.tilt)}
    for name, usual in {**OF_LINKS, **(FRICTION if _has_friction(config) else {})}.items():
        given = getattr(material, name)
        params[name] = np.full(n, usual if given is None else given, dtype=float)
    start = {
        name: np.zeros(n) if given is None else np.array(given, dtype=float)
        for name, given in (("angle", state.angle), ("rate", state.rate))
    }
    moves = config.simulator.drive == "pivot"
    return Fields(params=params, state=start, channels=2 if moves else n, markers=ChainMarkers(n, moves))


def build_model(config: Any) -> Chain | Spherical:
    """Build the model of a validated scene."""
    dt, integrator = config.time.dt, config.simulator.integrator
    if config.simulator.kind == "spherical":
        return Spherical(dt, integrator)
    moves = config.simulator.drive == "pivot"
    return Chain(np.size(config.geometry.length), dt, integrator, _has_friction(config), moves)


def _has_friction(config: Any) -> bool:
    """Tell if friction or drag is given, or unknown."""
    unknown = {each.parameter for each in config.unknowns.values()}
    return any([name in unknown or getattr(config.material, name) is not None for name in FRICTION])


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Collect all problems. A section that is itself invalid is None; checks that depend on it are skipped."""
    simulator: PendulumSimulator | None = sections.get("simulator")
    geometry: GeometrySection | None = sections.get("geometry")
    material: MaterialSection | None = sections.get("material")
    environment: EnvironmentSection | None = sections.get("environment")
    state: StateSection | None = sections.get("state")
    if simulator is None:
        return []
    found: list[Problem] = []
    if simulator.drive == "pivot":
        found += _check_pivot(simulator, sections)
    if simulator.kind == "spherical":
        return [*found, *_check_spherical(geometry, material, environment, state)]
    if environment is not None and isinstance(environment.gravity, list):
        constraint, remedy = "a chain takes a number", "Give a number, and a tilt for its direction."
        found.append(
            Problem(key=("environment", "gravity"), constraint=constraint, found=environment.gravity, remedy=remedy)
        )
    if state is not None and state.direction is not None:
        remedy = 'Give the angle of each link, or simulator.kind = "spherical".'
        constraint = "only a spherical pendulum has a direction"
        found.append(Problem(key=("state", "direction"), constraint=constraint, found=state.direction, remedy=remedy))
    if geometry is not None:
        n = np.size(geometry.length)
        if material is not None:
            found += _find_massless(material, n)
        for section, names in ((material, ("mass", "damping", *OF_CHAINS)), (state, ("angle", "rate"))):
            for name in names:
                value = getattr(section, name, None)
                if isinstance(value, list) and len(value) != n:
                    found.append(
                        Problem(
                            key=("material" if section is material else "state", name),
                            constraint=f"must have {n} elements, one for each link",
                            found=value,
                            remedy=f"It has {len(value)}: give {n}.",
                        )
                    )
    return found


def _check_pivot(simulator: PendulumSimulator, sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Check that a pivot that moves is that of a chain under rk4, and that nothing sees its motion."""
    key: Key = ("simulator", "drive")
    if simulator.kind == "spherical":
        remedy = "Give a chain, or drop drive."
        yield Problem(key=key, constraint="belongs to a chain", found=simulator.drive, remedy=remedy)
    elif simulator.integrator != "rk4":
        constraint, remedy = "a pivot moves under rk4 only", 'Set simulator.integrator = "rk4".'
        yield Problem(key=key, constraint=constraint, found=simulator.integrator, remedy=remedy)
    if "control" in sections and sections["control"] is None:
        constraint, remedy = "a pivot moves as a control says", "Add [control] with two channels, or drop drive."
        yield Problem(key=key, constraint=constraint, found=NOTHING, remedy=remedy)
    recordings: list[tuple[Key, Any]] = [(("observations",), sections.get("observations"))]
    for place, one in enumerate(sections.get("experiments") or []):
        recordings.append((("experiments", place, "observations"), one.observations))
    for where, seen in recordings:
        for place, channel in enumerate(getattr(seen, "channels", None) or []):
            if channel.field == "acceleration":
                constraint = "an accelerometer feels the motion of the pivot, which its channel leaves out"
                remedy = "Drop the channel, or measure angles, rates or markers relative to the pivot."
                key = (*where, "channels", place, "field")
                yield Problem(key=key, constraint=constraint, found=channel.field, remedy=remedy)


def _find_massless(material: MaterialSection, links: int) -> Iterator[Problem]:
    """Find links without an inertia about their upper joints."""
    centre = 1.0 if material.centre is None else material.centre
    inertia = 0.0 if material.inertia is None else material.inertia
    if {np.size(centre), np.size(inertia)} <= {1, links} and ((np.array(centre) == 0) & (np.array(inertia) == 0)).any():
        constraint = "a link whose centre of mass is in its joint needs an inertia"
        remedy = "Move its centre of mass, or give it a material.inertia."
        yield Problem(key=("material", "centre"), constraint=constraint, found=centre, remedy=remedy)


def _check_spherical(
    geometry: GeometrySection | None,
    material: MaterialSection | None,
    environment: EnvironmentSection | None,
    state: StateSection | None,
) -> Iterator[Problem]:
    for section, name, names in ((geometry, "geometry", ("length",)), (material, "material", ("mass", "damping"))):
        for each in names:
            value = getattr(section, each, None)
            if isinstance(value, list):
                constraint = "a spherical pendulum takes a number"
                yield Problem(key=(name, each), constraint=constraint, found=value, remedy="Give one number.")
    for each in OF_CHAINS:
        value = getattr(material, each, None)
        if value is not None:
            constraint, remedy = "belongs to a chain", "Remove it, or give a chain of one link."
            yield Problem(key=("material", each), constraint=constraint, found=value, remedy=remedy)
    if environment is not None and environment.tilt:
        constraint, remedy = "only a chain has a tilt", "Give gravity as a vector."
        yield Problem(key=("environment", "tilt"), constraint=constraint, found=environment.tilt, remedy=remedy)
    if state is None:
        return
    if state.angle is not None:
        constraint, remedy = "only a chain has angles", "Give the direction [3] of the link."
        yield Problem(key=("state", "angle"), constraint=constraint, found=state.angle, remedy=remedy)
    if state.direction is None or not any(state.direction):
        constraint, remedy = "must be a direction", "Give three numbers, not all 0: from the support to the mass."
        yield Problem(
            key=("state", "direction"), constraint=constraint, found=state.direction or NOTHING, remedy=remedy
        )
        return
    if state.rate is None:
        return
    if len(state.rate) != 3:
        remedy = f"It has {len(state.rate)}: give 3."
        yield Problem(
            key=("state", "rate"), constraint="an angular velocity has 3 elements", found=state.rate, remedy=remedy
        )
        return
    along = np.dot(state.rate, state.direction) / np.linalg.norm(state.direction)
    if abs(along) > PERPENDICULAR * np.linalg.norm(state.rate):
        constraint = "must be perpendicular to the direction: a point mass does not spin about its link"
        remedy = f"Its component along the link is {along:.3g} rad/s: remove it."
        yield Problem(key=("state", "rate"), constraint=constraint, found=state.rate, remedy=remedy)
