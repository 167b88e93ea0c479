"""Names of the bodies of a scene: those that its file gives, or else a word and a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class BodyNames:
    """Names of bodies, by their numbers."""

    word: str = "node"
    given: tuple[str | None, ...] = ()
    """Names of the first bodies; None for one without a name."""

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
        return "bodies" if self.word == "body" else f"{self.word}s"


NODES = BodyNames()
"""Names of nodes, which have numbers only."""


def name_bodies(simulator: Any, sections: Sequence[Any] = ()) -> BodyNames:
    """Name the bodies of a scene, from its sections [simulator] and [[bodies]], as sections or as dictionaries."""
    about = simulator if isinstance(simulator, Mapping) else vars(simulator)
    name, kind = (str(about.get(key, "")) for key in ("name", "kind"))
    word = NODES.word if kind == "spherical" else WORDS.get(name, NODES.word)
    return BodyNames(word, given_names(sections) if name == "rigid" else ())


def given_names(sections: Sequence[Any]) -> tuple[str | None, ...]:
    """Read the names in sections [[bodies]]; for a simulator of particles, those of its pieces of material."""
    return tuple(each.get("name") if isinstance(each, Mapping) else getattr(each, "name", None) for each in sections)
