"""Every term of the adjoints and tangents of forces on a fluid is needed: viscosity, buoyancy, obstacles, sides."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.simulators.smoke import buoyancy, diffuse, entries, faces, means, obstacle, sides

from ..simulators.smoke import test_buoyancy, test_diffuse, test_obstacle, test_sides
from ..simulators.smoke.flows import leaf, some, variants, velocity
from .margins import room
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 2
"""Number of mutants per rule in a sample."""

EQUIVALENT = {
    "adj_no_drag: 0 * * -> 0": "the same number",
    "adj_no_drag: 0 * * -> -*": "the same number",
}

ALSO = (*ERRORS, TypeError, AttributeError, RuntimeError)
"""Errors of mutants; the compiler raises RuntimeError for an unused variable."""


def check(module: Any, function: str, name: str, *inputs: Any) -> None:
    model = variants()[name]
    apply = getattr(module, function).apply
    gradcheck(lambda *x: apply(model, *x), (velocity(model), *inputs), mode="projected", repeats=1)


def diffusion(module: Any) -> None:
    for name in ("channel", "collocated"):
        check(module, "Diffuse", name, leaf(0.3), some(4, 2))
    for name in ("channel", "slip"):
        model = variants()[name]
        before = velocity(model)
        after = module.Diffuse.apply(model, before, leaf(0.3), some(4, 2))
        for side in range(4):
            at = faces.side_index(model, side // 2, side)
            kept = np.array_equal(after.data[at], before.data[at])
            assert kept == faces.is_prescribed(model, side), "given faces keep their velocity, and no others"


def diffused_parts(module: Any) -> None:
    diffusion(module)
    for name in ("channel", "collocated", "space"):
        test_diffuse.check_parts(variants()[name], module)


def pushed(module: Any) -> None:
    for name in ("channel", "periodic"):
        check(module, "Buoyancy", name, some(4, 3), some(2))


def stopped(module: Any) -> None:
    model = variants()["slip"]
    inputs = velocity(model), leaf(0.4 * some(4, 3, seed=3).data)
    gradcheck(lambda *x: module.obstruct(model, *x), inputs, mode="projected", repeats=1)
    dot_product_test(lambda *x: module.obstruct(model, *x), inputs)
    gradcheck(lambda force: module.NoDrag.apply(model, force), (some(2),))
    test_obstacle.check_parts(model, module)


def given(module: Any) -> None:
    """Check the derivative with respect to both inputs, and to the velocity alone."""
    check(module, "ApplySides", "channel", some(4, 2))
    check(module, "ApplySides", "channel", some(4, 2).detach())
    test_sides.check_parts(variants()["channel"], module)
    with patch.object(diffuse, "add_sides", module.add_sides):
        diffused_parts(diffuse)


def means_of(module: Any) -> None:
    """Check inner faces, sides with and without a weight, a collocated grid, and three dimensions."""
    new = {name: getattr(module, name) for name in ("add_means", "adj_means", "adj_factors")}
    with patch.multiple(buoyancy, **new), patch.object(obstacle, "adj_means", module.adj_means):
        pushed(buoyancy)
        stopped(obstacle)
        for name in ("channel", "periodic"):
            test_buoyancy.check_parts(variants()[name], buoyancy)
        check(buoyancy, "Buoyancy", "collocated", some(4, 3), some(2))
        check(buoyancy, "Buoyancy", "space", some(3, 2, 2), some(3))


def in_margins(checked: Callable[[Any], None]) -> Callable[[Any], None]:
    """Check with room around all arrays, and nothing kept from other checks."""

    def check_with_room(module: Any) -> None:
        kept = entries.table_of, entries.work_of, entries._ones, sides._entering, diffuse._dependent
        with room():
            for each in kept:
                each.cache_clear()
            try:
                checked(module)
            finally:
                for each in kept:
                    each.cache_clear()

    return check_with_room


def sweep_of(module: ModuleType, rules: tuple[str, ...], checked: Callable[[Any], None]) -> Sweep:
    return Sweep(module, rules, in_margins(checked), errors=ALSO, equivalent=EQUIVALENT)


SWEEPS = [
    sweep_of(diffuse, ("loops.adj_velocity", "loops.multiply", "adj_*", "jvp_*"), diffused_parts),
    sweep_of(buoyancy, ("adj_*", "jvp_*"), pushed),
    sweep_of(sides, ("loops.add_sides", "adj_*", "jvp_*"), given),
    sweep_of(obstacle, ("adj_*", "jvp_*"), stopped),
    sweep_of(means, ("*.adj_means", "adj_*"), means_of),
]
