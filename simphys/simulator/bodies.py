"""Description of a simulator's bodies, which is all that recordings, pictures and losses use of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


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
