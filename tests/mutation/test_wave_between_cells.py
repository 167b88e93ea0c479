"""Every term of the adjoints and tangents of sources and receivers is needed, in sub-steps and fused loops."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.numerics import cubic
from simphys.simulators.wave import source
from simphys.simulators.wave.fused import engine, sources_and_receivers
from simphys.simulators.wave.model import Wave
from simphys.substep import per_element

from ..simulators.wave.between_cells import DX, sources
from ..simulators.wave.systems import case
from ..substep import test_splines, test_weighted
from ..substep.between_cells import PLANE, make_points
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep
from .test_wave import check_rollout

EACH = 1
"""Number of mutants per rule in a sample: all compile kernels."""
points = import_module("simphys.substep.points")
splines = import_module("simphys.substep.splines")
from_grid, to_grid = (import_module(f"simphys.substep.{name}") for name in ("from_grid", "to_grid"))
ALSO = (*ERRORS, TypeError, RuntimeError, KeyError, AttributeError, NameError, IndexError, SyntaxError)
"""Errors of mutants: of the compiler, and of generated text that names what does not exist."""

SIDES = ("zero", "free", "periodic", "periodic")
MODEL = Wave((5, 6), DX, 0.1, boundaries=SIDES, sources=("point", "plane_y"), receivers=2)


def check(function: Any, inputs: Any) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)
    dot_product_test(function, inputs)


def check_sources(module: Any) -> None:
    check(lambda *x: module.drive(MODEL, *x), [tensor(values, requires_grad=True) for values in sources(MODEL)])


def check_fused(module: Any) -> None:
    with patch.object(engine, "SourcesAndReceivers", module.SourcesAndReceivers):
        check_rollout(case(MODEL, 3, batch=2, batched=("source_position", "control")))


def check_cubic(module: Any) -> None:
    """Check the weights of points by themselves, and in sums over the cells around them."""
    names = {f"w_{k}": "f" for k in range(cubic.STENCIL)}
    weights = per_element(module.cubic, over="points", own={"f": "offset"}, results=names)
    offsets = tensor(np.random.default_rng(0).uniform(0.1, 0.9, size=(3, 2)), requires_grad=True)
    check(lambda f: weights.apply(PLANE, f), (offsets,))


def check_points(module: Any) -> None:
    read = module.read_at("value", field="field", position="points", over="points")
    spread = module.spread_from("density", strength="strength", position="points", over="points", even="even")
    field, points, strength = make_points(PLANE)
    check(lambda *x: read.apply(PLANE, *x), (field, points))
    check(lambda *x: spread.apply(PLANE, *x), (strength, points))
    for made, first in ((read, field), (spread, strength)):  # each alone, as the other has no tangent
        fixed = tensor(first.data), tensor(points.data)
        check(lambda x, made=made, fixed=fixed: made.apply(PLANE, x, fixed[1]), (first,))
        check(lambda x, made=made, fixed=fixed: made.apply(PLANE, fixed[0], x), (points,))


def check_from_grid(module: Any) -> None:
    """Check sums over the nodes around points, and around particles."""
    with patch.object(points, "FromGrid", module.FromGrid):
        check_points(points)
    made = module.from_grid(test_splines.sample, **test_splines.SAMPLE)
    check(lambda *x: made.apply(test_splines.GRIDS[2], *x), test_splines.sample_inputs(2))


def check_to_grid(module: Any) -> None:
    with patch.object(points, "ToGrid", module.ToGrid):
        check_points(points)
    made = module.to_grid(test_splines.field, **test_splines.SPREAD)
    check(lambda *x: made.apply(test_splines.GRIDS[2], *x, 0.3), test_splines.spread_inputs(2))


def check_weighted(module: Any) -> None:
    sums = module.weighted("signal", of="field", by="response", rows="detectors", columns="cells")

    def apply(field: Tensor) -> Any:
        return sums.apply(test_weighted.Model(), field)

    check(apply, (test_weighted.draw(),))


def check_splines(module: Any) -> None:
    """Check both directions with the parts that they share."""
    parts = {name: vars(module.SplinePattern)[name] for name in ("begin_terms", "_tangent_at", "add_results")}
    with patch.multiple(splines.SplinePattern, **parts):
        check_from_grid(from_grid)
        check_to_grid(to_grid)


SPLINES = ("SplinePattern.begin_terms", "SplinePattern.begin_terms.*", "SplinePattern._tangent_at")
FROM_GRID = ("FromGrid.compute", "FromGrid.append_adjoints", "FromGrid.pull", "FromGrid._scatter_adjoints.*")
TO_GRID = ("ToGrid.append_results", "ToGrid._load_adjoint", "ToGrid.pull")
NO_OFFSET = {
    "adj_take: 0.0 ? r -> r": "the weights of points tell nothing of the distance, which is 0",
    "adj_take: 0.0 ? r -> -(0.0 ? r)": "minus nothing",
}
OTHER_WAY = {"FromGrid.pull: name in self.varying -> name not in self.varying": "the same sum, by another formula"}
FUSED = ("SourcesAndReceivers.moves", "SourcesAndReceivers._move")
"""The others have arithmetic on rows, which must not leave the arrays; they are held by nested = fused."""
SWEEPS = [
    Sweep(source, ("adj_*", "jvp_*"), check_sources, errors=ALSO),
    Sweep(cubic, ("adj_*", "jvp_*"), check_cubic, errors=ALSO),
    Sweep(points, ("adj_take",), check_points, errors=ALSO, equivalent=NO_OFFSET),
    Sweep(splines, SPLINES, check_splines, errors=ALSO),
    Sweep(from_grid, FROM_GRID, check_from_grid, errors=ALSO, equivalent=OTHER_WAY),
    Sweep(to_grid, TO_GRID, check_to_grid, errors=ALSO),
    Sweep(import_module("simphys.substep.weighted"), ("Weighted.adjoint",), check_weighted, errors=ALSO),
    Sweep(sources_and_receivers, FUSED, check_fused, errors=ALSO),
]
