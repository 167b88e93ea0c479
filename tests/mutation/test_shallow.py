"""Every term of the adjoints and tangents of shallow water is needed, and so is every one of weighted sums of cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.simulators.wave.shallow import advance, fluxes, friction

from ..simulators.wave.shallow.basins import basin, random_leaf
from ..substep.stencils import GRIDS, WEIGHTS, apply_by_numpy
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 2
"""Number of mutants per rule in a sample: all compile kernels."""
ALSO = (*ERRORS, TypeError, RuntimeError, KeyError, AttributeError, NameError)
"""Errors of mutants: of the compiler, and of generated text that names what does not exist."""


def check(function: Callable[..., Any], inputs: Any) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)
    dot_product_test(function, inputs)


def check_fluxes(module: Any) -> None:
    model, params, state = basin()

    def compute(eta: Any, u: Any, depth: Any, g: Any) -> Any:
        return module.compute_fluxes(model, eta, u, module.add_up_height(model, eta, depth), g)

    check(compute, (*state.tensors(), params.depth, params.gravity))


def check_stage(module: Any) -> None:
    model, _, state = basin()
    made = random_leaf(model.dim, *model.cells), random_leaf(*model.cells, seed=1), random_leaf(*model.cells, seed=2)
    check(lambda eta, u, *x: module.advance(model, 0.5, eta, u, x), (*state.tensors(), *made))


def check_friction(module: Any) -> None:
    model, params, state = basin(dt=1.0)
    check(lambda *x: module.damp_velocity(model, *x), (state.velocity, params.depth, params.friction))


def check_stencil(module: Any) -> None:
    random = np.random.default_rng(1)
    made = module.stencil("sums", WEIGHTS)
    for grid in map(replace, GRIDS.values()):
        arrays = random.standard_normal(grid.cells), random.standard_normal((2, *grid.cells))
        inputs = [tensor(values, requires_grad=True) for values in arrays]
        np.testing.assert_allclose(made.apply(grid, *inputs).data, apply_by_numpy(*arrays), atol=1e-13)
        check(lambda *x, grid=grid: made.apply(grid, *x), inputs)


STENCIL = ("Stencil.adjoint", "Stencil.map", "_transpose", "_add_up", "find_neighbour")
SWEEPS = [
    Sweep(fluxes, ("adj_*", "jvp_*"), check_fluxes, errors=ALSO),
    Sweep(advance, ("adj_*", "jvp_*"), check_stage, errors=ALSO),
    Sweep(friction, ("adj_*", "jvp_*"), check_friction, errors=ALSO),
    Sweep(import_module("simphys.substep.stencil"), STENCIL, check_stencil, errors=ALSO),
]
