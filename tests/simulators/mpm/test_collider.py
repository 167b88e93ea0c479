"""Validation of colliders."""

from __future__ import annotations

import pytest

from simphys.autograd import InputError
from simphys.simulators.mpm.collider import Collider

from .grids import grid


@pytest.mark.parametrize("dim", [2, 3])
def test_each_shape_has_its_sizes(dim: int) -> None:
    for shape, size in {"sphere": (1.0,), "box": (1.0,) * dim, "capsule": (1.0, 0.2), "plane": ()}.items():
        Collider(shape, size).require_valid(dim)


@pytest.mark.parametrize(
    ("collider", "message"),
    [
        (Collider("cone", (1.0,)), r"Collider\.shape.*sphere.*'?cone"),
        (Collider("sphere", (1.0,), "glue"), r"Collider\.contact.*sticking.*glue"),
        (Collider("sphere"), r"Collider\.size: a sphere has 1 positive size"),
        (Collider("box", (1.0, 1.0, 1.0)), r"Collider\.size: a box has 2 positive sizes"),
        (Collider("capsule", (1.0, 0.0)), r"Collider\.size: a capsule has 2 positive sizes"),
        (Collider("sphere", (float("nan"),)), r"Collider\.size: a sphere"),
        (Collider("plane", (1.0,)), r"Collider\.size: a plane has 0"),
    ],
)
def test_invalid_colliders_are_refused(collider: Collider, message: str) -> None:
    with pytest.raises(InputError, match=message):
        grid((10, 10), collider)
