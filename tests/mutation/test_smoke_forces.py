"""Every term of the adjoints and tangents of forces on a fluid is needed: viscosity, buoyancy, obstacles, sides."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.simulators.smoke import buoyancy, diffuse, faces, obstacle, sides

from ..simulators.smoke.flows import leaf, some, variants, velocity
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 2
"""Number of mutants per rule in a sample."""

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


def pushed(module: Any) -> None:
    for name in ("channel", "periodic"):
        check(module, "Buoyancy", name, some(4, 3), some(2))


def stopped(module: Any) -> None:
    model = variants()["slip"]
    inputs = velocity(model), leaf(0.4 * some(4, 3, seed=3).data)
    gradcheck(lambda *x: module.obstruct(model, *x), inputs, mode="projected", repeats=1)
    dot_product_test(lambda *x: module.obstruct(model, *x), inputs)


def given(module: Any) -> None:
    """Check the derivative with respect to both inputs, and to the velocity alone."""
    check(module, "ApplySides", "channel", some(4, 2))
    check(module, "ApplySides", "channel", some(4, 2).detach())


def means(module: Any) -> None:
    """Check inner faces, sides with and without a weight, a collocated grid, and three dimensions."""
    with patch.object(buoyancy, "adj_mean", module.adj_mean), patch.object(obstacle, "adj_mean", module.adj_mean):
        pushed(buoyancy)
        stopped(obstacle)
        check(buoyancy, "Buoyancy", "collocated", some(4, 3), some(2))
        check(buoyancy, "Buoyancy", "space", some(3, 2, 2), some(3))


SWEEPS = [
    Sweep(diffuse, ("pull", "push", "_zero_given_faces"), diffusion, errors=ALSO),
    Sweep(buoyancy, ("pull", "push"), pushed, errors=ALSO),
    Sweep(sides, ("pull", "push"), given, errors=ALSO),
    Sweep(
        obstacle,
        ("adj_*", "jvp_*"),
        stopped,
        errors=ALSO,
    ),
    Sweep(faces, ("adj_mean",), means, errors=ALSO),
]
