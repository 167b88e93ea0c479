"""Names of the bodies of a scene: those that its file gives, or else a word and a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from simphys.scenefile.section import EACH, Key, Problem

WORDS = {
    "rigid": "body",
    "billiards": "ball",
    "charges": "charge",
    "pendulum": "link",
    "mpm": "particle",
    "molecular": "atom",
    "sph": "particle",
}
"""Word for a body of each simulator; others have nodes, and so has a spherical pendulum."""
PIECES = {"sph": ("fluid", "wall")}
"""Names of the pieces of material of simulators whose scenes do not name them."""
FIELDS_OF_BODIES = {"body": ("orientation", "angular_velocity"), "link": ("angle", "rate")}
"""Fields with an entry for each body, besides positions and velocities, by the word for a body."""
PLURALS = {"body": "bodies", "axis": "axes"}
NAMING = {"rigid": "[[bodies]] name", "mass_spring": "geometry.names"}
"""Keys by which scenes of a simulator name single bodies."""
_CHANNEL = ("observations", "channels", EACH)
NAMED: tuple[Key, ...] = (
    (*_CHANNEL, "node"),
    (*_CHANNEL, "to"),
    ("experiments", EACH, *_CHANNEL, "node"),
    ("experiments", EACH, *_CHANNEL, "to"),
    ("loss", "terms", EACH, "nodes", EACH),
)
"""Keys of any scene at which a body may be named, besides those of the simulator (sized.py)."""


@dataclass(frozen=True)
class BodyNames:
    """Names of bodies, or of other things that are numbered."""

    word: str = "node"
    given: tuple[str | None, ...] = ()
    """Names of the first ones; None for one without a name."""

    def of(self, body: int) -> str:
        """Name a body: 'trunk', or 'body 3'."""
        name = self.given[body] if body < len(self.given) else None
        return name or f"{self.word} {body}"

    def gives(self, body: int) -> bool:
        """True if the scene gives the body a name."""
        return body < len(self.given) and bool(self.given[body])

    @property
    def several(self) -> str:
        """Word for several of them."""
        return PLURALS.get(self.word, f"{self.word}s")


NODES = BodyNames()
"""Names of nodes, which have numbers only."""


def name_bodies(scene: Any) -> BodyNames:
    """Name the bodies of a scene, a config or its tables."""
    simulator = take(scene, "simulator")
    name, kind = (str(take(simulator, key) or "") for key in ("name", "kind"))
    word = NODES.word if kind == "spherical" else WORDS.get(name, NODES.word)
    return BodyNames(word, given_names(scene) if name in NAMING else ())


def name_naming_key(scene: Any) -> str:
    """Name the key by which a scene of its simulator names single bodies; empty where there is none."""
    return NAMING.get(str(take(take(scene, "simulator"), "name")), "")


def given_names(scene: Any) -> tuple[str | None, ...]:
    """Read the names that a scene gives bodies or nodes; of a simulator of particles, those of its pieces of material.

    Tables that are not valid give none.
    """
    bodies, nodes = take(scene, "bodies"), take(take(scene, "geometry"), "names")
    if isinstance(nodes, Mapping):
        by_number = {number: name for name, number in nodes.items() if isinstance(number, int)}
        return tuple([by_number.get(number) for number in range(max(by_number, default=-1) + 1)])
    names = [take(each, "name") for each in bodies] if isinstance(bodies, Sequence) else []
    return tuple([name if isinstance(name, str) else None for name in names])


def replace_names(scene: dict[str, Any], places: Sequence[Key]) -> tuple[dict[str, Any], list[Problem]]:
    """Replace the names of bodies at some keys of a scene's tables by their numbers, and report unknown names."""
    names, problems = name_bodies(scene), []

    def number(key: Key, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value in names.given:
            return names.given.index(value)
        problems.append(_unknown_name(key, value, names, name_naming_key(scene)))
        return value

    for place in places:
        scene = change_at(scene, (), place, number)
    return scene, problems


def _unknown_name(key: Key, name: str, names: BodyNames, naming: str) -> Problem:
    known = list(filter(None, names.given))
    if known:
        remedy = suggest(name, known)
    else:
        where = f", or names in {naming}" if naming else ""
        remedy = f"No {names.word} has a name: give its number, from 0 on{where}."
    return Problem(key, f"must be the name or the number of a {names.word}", name, remedy)


def suggest(name: str, known: Sequence[str]) -> str:
    """Suggest a name for one that there is not."""
    near = [f"Did you mean {each!r}?" for each in get_close_matches(name, known, 1)]
    return " ".join([*near, f"The names are {', '.join(known)}."])


def take(table: Any, key: str) -> Any:
    """Take the value of a key of a table or a section; None if there is none."""
    return table.get(key) if isinstance(table, Mapping) else getattr(table, key, None)


def change_at(value: Any, key: Key, rest: Key, change: Callable[[Key, Any], Any]) -> Any:
    """Change what stands at some keys below a value, which has a key itself; what they do not reach stays as it is."""
    if not rest:
        return change(key, value)
    if isinstance(value, list) and rest[0] == EACH:
        return [change_at(each, (*key, place), rest[1:], change) for place, each in enumerate(value)]
    if isinstance(value, dict) and rest[0] == EACH:
        return {name: change_at(each, (*key, name), rest[1:], change) for name, each in value.items()}
    if isinstance(value, dict) and rest[0] in value:
        return {**value, rest[0]: change_at(value[rest[0]], (*key, rest[0]), rest[1:], change)}
    return value
