"""Every term of the adjoints and tangents on the grid is needed: contacts, distances, rotations, colliders, walls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from simphys.autograd import tensor
from simphys.autograd.proof import mutation
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.numerics import quaternion, rotation
from simphys.simulators.mpm import collider_motion, collision, contact, grid, signed_distance, wall
from simphys.simulators.mpm.collider import Collider

from ..helpers.elements import element
from ..numerics import test_quaternion, test_rotation
from ..simulators.mpm import (
    substeps,
    test_collider_motion,
    test_collision,
    test_contact,
    test_grid,
    test_signed_distance,
)
from ..simulators.mpm.grids import build_env
from ..simulators.mpm.grids import grid as small_grid
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 1
"""Number of mutants per rule in a sample: all compile kernels."""

EQUIVALENT: dict[str, str] = {}

check = functools.partial(gradcheck, mode="projected", repeats=2)


def contacts(module: Any) -> None:
    with patch.object(test_contact, "contact", module):
        for name in ("separating", "friction"):
            law = test_contact.law.__wrapped__(name, 2)
            check(law, test_contact.rows(*test_contact.some(2), 0.6))


def distances(module: Any) -> None:
    surface = functools.cache(test_signed_distance.surface.__wrapped__)
    with (
        patch.object(test_signed_distance, "signed_distance", module),
        patch.object(test_signed_distance, "surface", surface),
    ):
        test_signed_distance.test_over_an_edge_of_a_face_the_normal_turns_as_on_the_flat_side()
        for shape in ("box", "capsule"):
            check(
                surface(shape, 2),
                test_signed_distance.at(*test_signed_distance.around(2)),
            )


def quaternions(module: Any) -> None:
    with patch.object(test_quaternion, "quaternion", module):
        phi = tensor(test_quaternion.rotation_vectors(test_quaternion.ANGLES), requires_grad=True)
        check(element(again(test_quaternion.exponential), 4), phi)
        check(element(again(test_quaternion.product), 4), test_rotation.some(8))


def again(pack: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a new function, which caches treat as another one."""
    return lambda real: pack(real)


def rotations(module: Any) -> None:
    with patch.object(test_rotation, "rotation", module):
        for dim, count in ((2, 1), (3, 4)):
            check(test_rotation.rotate_vector(dim), test_rotation.some(count + dim))
        for dim, count in ((2, 1), (3, 3)):
            check(test_rotation.cross_product(dim), test_rotation.some(count + dim))
    with fresh(collider_motion) as motion, patch.object(motion, "rotation", module):
        moved(motion)


def fresh(module: ModuleType) -> Any:
    """Load a copy of a module, whose kernels are not compiled yet."""
    assert module.__file__ is not None
    return mutation.load_changed(module, Path(module.__file__).read_bytes())


def moved(module: Any) -> None:
    with patch.object(substeps, "MoveColliders", module.MoveColliders):
        for dim in (2, 3):
            model = test_collider_motion.bodies(dim)
            check(test_collider_motion.motion_of(model), test_collider_motion.inputs_of(model))


def collisions(module: Any) -> None:
    with patch.object(test_collision, "collision", module):
        for shape, dim in (("capsule", 2), ("box", 3)):
            check(test_collision.collide.__wrapped__(shape, "friction", dim), test_collision.some(dim))


def nodes(module: Any) -> None:
    """Check a grid with a collider between walls."""
    box = Collider("box", (0.08, 0.12), "friction")
    around: dict[str, Any] = {"gravity": (1.0, -2.0), "wall_friction": 0.3}
    model = small_grid((6, 6), box, margin=2, walls=("friction",) * 4, skin=0.15)
    around |= {"position": (0.26, 0.23), "rotation": 0.4, "velocity": (0.3, -0.5), "spin": 1.5, "friction": 0.4}
    with patch.multiple(substeps, FreeVelocity=module.FreeVelocity, constrain=module.constrain):
        check(test_grid.velocity(model), (*test_grid.nodes_of(model), build_env(model, **around)))


def part_of_grid(name: str) -> Callable[[Any], None]:
    """Make a check of `nodes` with the sub-steps that a module declares."""

    def checked(module: Any) -> None:
        with patch.object(grid, name, getattr(module, name)):
            nodes(grid)

    return checked


def sweep_of(module: ModuleType, checked: Callable[[Any], None], *rules: str) -> Sweep:
    return Sweep(module, rules, checked, equivalent=EQUIVALENT)


SWEEPS = [
    sweep_of(contact, contacts, "functions.adj_*", "functions.jvp_*"),
    sweep_of(signed_distance, distances, "derivatives.apply_hessian", "derivatives.adj_*", "derivatives.jvp_*"),
    sweep_of(quaternion, quaternions, "adj_*", "jvp_*"),
    sweep_of(rotation, rotations, "adj_*", "jvp_*"),
    sweep_of(collider_motion, moved, "adj_*", "jvp_*"),
    sweep_of(collision, collisions, "functions.adj_*", "functions.jvp_*"),
    sweep_of(collision, part_of_grid("collide"), "collide.adj_*", "collide.jvp_*"),
    sweep_of(wall, part_of_grid("walls"), "walls.adj_*", "walls.jvp_*"),
    sweep_of(grid, nodes, "adj_*", "jvp_*"),
]
