"""Description of a simulator's bodies, which is all that recordings, pictures and losses use of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from ..autograd.errors import InputError


def _no_links() -> npt.NDArray[np.int32]:
    return np.zeros((0, 2), np.int32)


@dataclass(frozen=True, kw_only=True)
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
    own: int
    """Number of the scene's own bodies, which losses depend on; they come first."""
    names: tuple[str | None, ...] = ()
    """Names of the bodies, or of the pieces of material; None for one without a name."""

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
