"""Description of a simulator's bodies, which is all that recordings, pictures and losses use of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from ..autograd.errors import InputError
from ..autograd.look.html import html_table

NAMED = 12
"""Largest number of names in a description."""


def _no_links() -> npt.NDArray[np.int32]:
    return np.zeros((0, 2), np.int32)


def _describe_places(places: npt.NDArray[np.int64]) -> str:
    if len(places) == 1:
        return f"body {places[0]}"
    first, last = places[0], places[-1]
    together = "" if last - first + 1 == len(places) else ", with others between them"
    return f"{len(places):,} bodies, {first} to {last}{together}"


def _rest(names: list[str]) -> list[tuple[str, str]]:
    return [("and", f"{len(names)} more names, up to {names[-1]!r}")] if names else []


@dataclass(frozen=True, kw_only=True, repr=False)
class Bodies:
    """Bodies with the fields `position` and `velocity` of the state, both [n, dim]."""

    pinned: npt.NDArray[np.bool_]
    """True for bodies that never move, [n]."""
    links: npt.NDArray[Any] = field(default_factory=_no_links)
    """Pairs of bodies that pictures join by a line, [m, 2]."""
    group: npt.NDArray[np.int32] | None = None
    """Piece of material of each body, [n], shown by colours in pictures; None for a single piece."""
    radius: npt.NDArray[Any] | None = None
    """Radius of each disc [n], for pictures to scale."""
    box: tuple[float, ...] | None = None
    """Length of each axis of the box that they move in, from the origin on: periodic, or inf for an open axis."""
    own: int
    """Number of the scene's own bodies, which losses depend on; they come first."""
    names: tuple[str | None, ...] = ()
    """Names of the bodies, or of the pieces of material; None for one without a name."""

    def __repr__(self) -> str:
        return "\n".join([self._title(), *[f"  {name:14}{what}" for name, what in self._rows()]])

    def _repr_html_(self) -> str:
        return html_table(self._title(), ("", ""), self._rows())

    def _title(self) -> str:
        count = len(self.pinned)
        return f"Bodies: {count:,}" + (f", {self.own:,} of them the scene's own" if self.own != count else "")

    def _rows(self) -> list[tuple[str, str]]:
        """Describe what there is: pinned bodies, links, radii, and the names with the bodies that they stand for."""
        rows = []
        if np.any(self.pinned):
            rows.append(("pinned", f"{np.count_nonzero(self.pinned):,}"))
        if len(self.links):
            rows.append(("links", f"{len(self.links):,}"))
        if self.box is not None:
            rows.append(("box", " x ".join(["open" if length == np.inf else f"{length:.4g}" for length in self.box])))
        if self.radius is not None:
            low, high = (f"{bound(self.radius):.4g}" for bound in (np.min, np.max))
            rows.append(("radius", low if low == high else f"{low} to {high}"))
        if self.group is not None:
            rows.append(("pieces", f"{len(np.unique(self.group)):,}"))
        given = list(dict.fromkeys(filter(None, self.names)))
        return rows + [(name, _describe_places(self[name])) for name in given[:NAMED]] + _rest(given[NAMED:])

    def __getitem__(self, name: str) -> npt.NDArray[np.int64]:
        """Find the bodies, or the particles of the pieces, with this name: their numbers along the axis of bodies.

        `state.position[bodies["trunk"]]` is [1, dim] for a body, [n, dim] for particles. Errors: InputError.
        """
        places = [place for place, given in enumerate(self.names) if given == name]
        if not places:
            known = [given for given in self.names if given]
            near = get_close_matches(name, known, 1)
            remedy = f"Write {near[0]!r}." if near else "Name bodies in the scene file: name = ..."
            raise InputError("bodies", f"their names are {', '.join(known) or 'none'}", repr(name), remedy)
        if self.group is not None:
            return np.flatnonzero(np.isin(self.group, places))
        if len(self.names) == 1 and len(self.pinned) > 1:  # a single piece of material
            return np.arange(len(self.pinned))
        return np.array(places)
