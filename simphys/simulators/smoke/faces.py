"""The locations of velocity entries, at faces or centres of cells.

On a staggered grid entry i of component a is at the face between cells i - 1 and i along axis a. Source: the staggered
grid of Harlow and Welch 1965.
"""

from __future__ import annotations

from typing import Any

from .model import Smoke


def own_faces(model: Smoke, component: int) -> tuple[int, ...]:
    """Return the number of faces of a component along each axis; entries beyond are 0."""
    return tuple([f if a == component else n for a, (f, n) in enumerate(zip(model.faces, model.cells, strict=True))])


def own_index(model: Smoke, component: int) -> tuple[Any, ...]:
    """Return the index of a component's own faces in a velocity array."""
    return (component, *map(slice, own_faces(model, component)))


def side_index(model: Smoke, component: int, side: int) -> tuple[Any, ...]:
    """Return the index of a component's entries nearest to a side, in a velocity array."""
    counts: list[Any] = [slice(count) for count in own_faces(model, component)]
    counts[side // 2] = 0 if side % 2 == 0 else own_faces(model, component)[side // 2] - 1
    return (component, *counts)


def is_prescribed(model: Smoke, side: int) -> bool:
    """Return True if the normal velocity at the faces of a side is prescribed, by a wall or an inflow."""
    return model.grid == "staggered" and model.boundaries[side] in ("closed", "inflow")
