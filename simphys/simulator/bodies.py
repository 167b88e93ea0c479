"""What a simulator of bodies tells of them: recordings, pictures and losses know no more of any simulator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


def _no_links() -> npt.NDArray[np.int32]:
    return np.zeros((0, 2), np.int32)


@dataclass(frozen=True, kw_only=True)
class Bodies:
    """Bodies that move: the state's fields `position` and `velocity`, [n, dim] both, are theirs."""

    pinned: npt.NDArray[np.bool_]
    """Bodies that never move, [n]."""
    links: npt.NDArray[Any] = field(default_factory=_no_links)
    """Pairs of bodies that pictures join by a line, [m, 2]."""
    group: npt.NDArray[np.int32] | None = None
    """Which piece of material each is of, [n]: pictures tell them apart by colour. None: all are of one."""
    radius: npt.NDArray[Any] | None = None
    """Of discs [n]: pictures draw them in their size."""
    own: int
    """How many of the first are the scene's own, which losses look at; any others follow them."""
