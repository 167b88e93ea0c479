"""Names of the channels of a control by what they drive, and of the rows of fields that are not of bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simphys.scenefile.body_names import FIELDS_OF_BODIES, BodyNames, name_bodies, take

CHANNEL = BodyNames("channel")
"""Names of channels of which nothing is known, such as those of a simulator of another package."""
AXES = BodyNames("axis", ("x", "y", "z"))
DRIVEN = {
    "charges": AXES,
    "elastic": BodyNames("source"),
    "heat": BodyNames("side", ("x-", "x+", "y-", "y+", "z-", "z+")),
    "mass_spring": BodyNames("actuator"),
    "pendulum": BodyNames("link"),
    "wave": BodyNames("source"),
}
"""Names of what the channels of a control drive, by simulator; the scene says more for some."""
FIELDS = {
    ("elastic", "strain"): BodyNames("place"),
    ("molecular", "rdf"): BodyNames("bin"),
    ("molecular", "thermo"): BodyNames("average", ("temperature", "pressure", "potential energy")),
    ("mpm", "collider_position"): BodyNames("collider"),
    ("mpm", "collider_rotation"): BodyNames("collider"),
    ("pendulum", "direction"): AXES,
    ("pendulum", "rate"): AXES,
    ("smoke", "force"): AXES,
    ("sph", "depth"): BodyNames("gauge"),
    ("wave", "received"): BodyNames("receiver"),
}
"""Names of the rows of small fields, by simulator; `rate` is that of a spherical pendulum."""
VECTORS = ("orientation", "angular_velocity", "collider_position", "collider_rotation")
"""Fields with several numbers in a row."""


def name_rows(scene: Any, field: str) -> BodyNames | None:
    """Name the rows of a field of the state besides positions and velocities, of bodies or others; None if unknown.

    scene: a config or its tables.
    """
    bodies = name_bodies(scene)
    return bodies if field in FIELDS_OF_BODIES.get(bodies.word, ()) else FIELDS.get((_simulator(scene), field))


def name_channels(scene: Mapping[str, Any]) -> BodyNames:
    """Name the channels of a scene's control: waves of a rhythm, columns of a file, or else what they drive."""
    control: Mapping[str, Any] = scene.get("control") or {}
    if control.get("kind") == "pattern" and scene.get("controller") is not None:
        return BodyNames("wave")
    columns = control.get("columns")
    if isinstance(columns, list) and any([isinstance(each, str) for each in columns]):
        return BodyNames(CHANNEL.word, tuple([each if isinstance(each, str) else f"column {each}" for each in columns]))
    amplitude = control.get("amplitude")
    if control.get("kind") == "wavelet" and isinstance(amplitude, list) and isinstance(amplitude[0], list):
        return CHANNEL  # of all members, one after the other
    return _name_driven(scene)


def _name_driven(scene: Mapping[str, Any]) -> BodyNames:
    """Name what the channels drive: motors by their joints, and actuators by the bodies that they stress."""
    name, simulator = _simulator(scene), scene["simulator"]
    if name == "rigid":
        joints = [each for each in scene.get("joints", ()) if each.get("motor") is not None]
        return BodyNames("motor", tuple([each.get("name") for each in joints]))
    if name == "mpm":
        colliders = _name_collider_parts(scene)
        word = CHANNEL.word if colliders else "actuator"
        return BodyNames(word, (*_name_actuators(scene.get("bodies", ())), *colliders))
    if name == "pendulum" and simulator.get("kind") == "spherical":
        return AXES
    if name == "pendulum" and simulator.get("drive") == "pivot":
        return BodyNames("axis", ("pivot x", "pivot y"))
    return DRIVEN.get(name, CHANNEL)


def _name_actuators(bodies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the actuators by their bodies, where one name is that of one actuator."""
    driven = [(each["actuator"], each.get("name")) for each in bodies if each.get("actuator") is not None]
    named = []
    for number in range(max([each for each, _ in driven], default=-1) + 1):
        of = {name for each, name in driven if each == number}
        alone = len(of) == 1 and {each for each, name in driven if name in of} == {number}
        named.append((alone and of.pop()) or f"actuator {number}")
    return named


def _name_collider_parts(scene: Mapping[str, Any]) -> list[str]:
    """Name what a control adds to the motion of colliders: velocities of all, and then spins of all."""
    colliders, dim = range(len(scene.get("colliders", ()))), len(scene["grid"]["cells"])
    moves = [f"collider {each} {axis}" for each in colliders for axis in "xyz"[:dim]]
    return moves + [
        f"collider {each} spin{axis}" for each in colliders for axis in ([""] if dim == 2 else [" x", " y", " z"])
    ]


def _simulator(scene: Any) -> str:
    return str(take(take(scene, "simulator"), "name"))
