"""A scene of pendulums: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.demands import demands_of
from simphys.scenefile.section import (
    NOTHING,
    Fields,
    Length,
    NonNegative,
    NotZero,
    Positive,
    Problem,
    Section,
    Simulator,
)
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import check_unused

from .chain import Chain
from .chain.markers import ChainMarkers
from .spherical import Spherical
from .spherical.markers import SphericalMarkers
from .spherical.sphere import ProjectToSphere

Vector = Annotated[list[float], Field(min_length=3, max_length=3)]
Lengths = Annotated[list[Positive], Field(min_length=1)]
OfLinks = Length("links")


class PendulumSimulator(Simulator):
    """Options of the simulator.

    kind: a chain of links in the plane, or one spherical pendulum. integrator: rk4, of order 4; or variational, of
    order 2, whose energy error stays bounded for all times without damping and torques. drive: what the control of a
    chain means: torques in its "joints" [N m], one each, or the acceleration of its "pivot", the first joint [m/s^2]:
    across and against the direction of the angle 0. Markers are then places relative to the pivot.
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
    These three take time only where one of them is given or unknown, or has a value.
    """

    mass: Positive | Annotated[list[Positive], OfLinks] = 1.0
    damping: NonNegative | Annotated[list[NonNegative], OfLinks] = 0.0
    centre: float | Annotated[list[float], OfLinks] | None = None
    inertia: NonNegative | Annotated[list[NonNegative], OfLinks] | None = None
    dry_friction: NonNegative | Annotated[list[NonNegative], OfLinks] | None = None
    transition_rate: Positive | Annotated[list[Positive], OfLinks] | None = None
    drag: NonNegative | Annotated[list[NonNegative], OfLinks] | None = None


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

    angle: Annotated[list[float], OfLinks] | None = None
    direction: Annotated[Vector, NotZero()] | None = None
    rate: Annotated[list[float], Length("rates")] | None = None


FRICTION = {"dry_friction": 0.0, "transition_rate": 0.1, "drag": 0.0}
"""Properties by which a chain has friction, with their values where they are not given."""

OF_LINKS = {"mass": 1.0, "damping": 0.0, "centre": 1.0, "inertia": 0.0}
"""Likewise, of any chain."""

OF_CHAINS = (
    *[("material", name) for name in ("centre", "inertia", *FRICTION)],
    ("environment", "tilt"),
    ("state", "angle"),
)
"""Keys that a spherical pendulum lacks."""

PERPENDICULAR = 1e-9
"""Largest relative component of the initial rate along the link."""


class PendulumConfig(Config):
    """A scene of a chain of pendulums, or of a spherical pendulum."""

    DEMANDS = demands_of(GeometrySection, "length") | demands_of(
        MaterialSection, "mass", "damping", "inertia", "dry_friction", "transition_rate", "drag"
    )

    ON_DEMAND = ("dry_friction", "drag")

    simulator: PendulumSimulator
    geometry: GeometrySection
    material: MaterialSection = MaterialSection()
    environment: EnvironmentSection = EnvironmentSection()
    state: StateSection = StateSection()

    @property
    def has_friction(self) -> bool:
        """True if friction or drag of a chain is given, or unknown, or has a value."""
        named = self.named_parameters
        return any([name in named or getattr(self.material, name) is not None for name in FRICTION])

    @property
    def moves(self) -> bool:
        """True if a control moves the pivot."""
        return self.simulator.drive == "pivot"

    @classmethod
    def find_sizes(cls, sections: Mapping[str, Any]) -> dict[str, int]:
        if "simulator" not in sections or "geometry" not in sections:
            return {}
        links = int(np.size(sections["geometry"].length))
        return {"rates": 3} if sections["simulator"].kind == "spherical" else {"links": links, "rates": links}

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        simulator, material, state = map(sections.get, ("simulator", "material", "state"))
        if simulator is None:
            return
        yield from _check_kind(simulator.kind == "chain", sections)
        if simulator.drive == "pivot":
            key = ("simulator", "drive")
            if simulator.kind == "spherical":
                yield Problem(key, "belongs to a chain", simulator.drive, "Give a chain, or drop drive.")
            if "control" in sections and sections["control"] is None:
                remedy = "Add [control] with two channels, or drop drive."
                yield Problem(key, "a pivot moves as a control says", NOTHING, remedy)
        if simulator.kind == "chain" and material is not None:
            yield from _find_massless(material)
        if simulator.kind == "spherical" and state is not None:
            yield from _check_direction(state)

    def build_fields(self) -> Fields:
        return self._build_spherical() if self.simulator.kind == "spherical" else self._build_chain()

    def _build_spherical(self) -> Fields:
        material, gravity, state = self.material, self.environment.gravity, self.state
        direction = np.array(state.direction, dtype=float)
        params = {
            "length": np.array(self.geometry.length),
            "mass": np.array(material.mass),
            "damping": np.array(material.damping),
            "gravity": np.array(gravity if isinstance(gravity, list) else [0.0, 0.0, -gravity]),
        }
        rate = np.zeros(3) if state.rate is None else np.array(state.rate, dtype=float)
        start = {"direction": direction / np.linalg.norm(direction), "rate": rate}
        return Fields(params=params, state=start, channels=3, markers=SphericalMarkers())

    def _build_chain(self) -> Fields:
        length = np.atleast_1d(np.array(self.geometry.length, dtype=float))
        n, environment = len(length), self.environment
        params = {"length": length, "gravity": np.array(environment.gravity), "tilt": np.array(environment.tilt)}
        for name, usual in (OF_LINKS | (FRICTION if self.has_friction else {})).items():
            given = getattr(self.material, name)
            params[name] = np.full(n, usual if given is None else given, dtype=float)
        start = {name: np.full(n, getattr(self.state, name) or 0.0, dtype=float) for name in ("angle", "rate")}
        return Fields(params=params, state=start, channels=2 if self.moves else n, markers=ChainMarkers(n, self.moves))

    def build_model(self) -> Chain | Spherical:
        dt, integrator = self.time.dt, self.simulator.integrator
        if self.simulator.kind == "spherical":
            return Spherical(dt, integrator)
        return Chain(np.size(self.geometry.length), dt, integrator, self.has_friction, self.moves)

    def completed(self, state: Any, design: Any = None, params: Any = None) -> Any:
        """Keep an unknown start on the sphere."""
        if self.simulator.kind == "chain":
            return state
        direction, rate = ProjectToSphere.apply(self.build_model(), *state.tensors())
        return state.replace(direction=direction, rate=rate)


def _check_kind(is_chain: bool, sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Check that keys belong to the kind of pendulum, and are single numbers where it has one link."""
    this, other = "a chain", "a spherical pendulum"
    foreign, numbers = [("state", "direction")], [("environment", "gravity")]
    if not is_chain:
        this, other = other, this
        foreign, numbers = [*OF_CHAINS], [("geometry", "length"), ("material", "mass"), ("material", "damping")]
    for section, name in foreign:
        value = getattr(sections.get(section), name, None) or None
        yield from check_unused((section, name), value, f"belongs to {other}", f"Drop it, or take {other}.")
    for section, name in numbers:
        if isinstance(value := getattr(sections.get(section), name, None), list):
            yield Problem((section, name), f"{this} takes a number", value, "Give one number.")


def _find_massless(material: MaterialSection) -> Iterator[Problem]:
    """Find links without an inertia about their upper joints."""
    centre = 1.0 if material.centre is None else material.centre
    inertia = 0.0 if material.inertia is None else material.inertia
    if ((np.array(centre) == 0) & (np.array(inertia) == 0)).any():
        constraint = "a link whose centre of mass is in its joint needs an inertia"
        remedy = "Move its centre of mass, or give it a material.inertia."
        yield Problem(("material", "centre"), constraint, centre, remedy)


def _check_direction(state: StateSection) -> Iterator[Problem]:
    """Check that the link of a spherical pendulum has a direction, and turns across it."""
    if state.direction is None:
        remedy = "Give three numbers, not all 0: from the support to the mass."
        yield Problem(("state", "direction"), "must be a direction", NOTHING, remedy)
    elif state.rate is not None:
        along = np.dot(state.rate, state.direction) / np.linalg.norm(state.direction)
        if abs(along) > PERPENDICULAR * np.linalg.norm(state.rate):
            constraint = "must be perpendicular to the direction: a point mass does not spin about its link"
            remedy = f"Its component along the link is {along:.3g}: remove it."
            yield Problem(("state", "rate"), constraint, state.rate, remedy)
