"""Every term of the adjoints and tangents of heat conduction is needed, and so is every one of faces and sides."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.numerics import coupled_cells
from simphys.simulators.heat import conduction

from ..simulators.heat.systems import MODELS, PLANE, make_system
from ..substep.grids import GRIDS, inflow, inflow_by_numpy, leak, leak_by_numpy
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 2
"""Number of mutants per rule in a sample: all compile kernels."""
ALSO = (*ERRORS, TypeError, RuntimeError, KeyError, AttributeError, NameError)
"""Errors of mutants: of the compiler, and of generated text that names what does not exist."""


def check(function: Any, inputs: Any) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)
    dot_product_test(function, inputs)


def check_conduction(module: Any) -> None:
    model, params, state, _ = make_system(PLANE)
    T, k, h = state.temperature, params.conductivity, model.spacing
    check(lambda *x: module.Conduction.apply(model, *x, h), (T, k))
    check(lambda *x: module.SideConduction.apply(model, *x, h), (T, k, params.side_temperature))
    inputs = (T, params.source, k, params.heat_capacity)
    check(lambda *x: module.Warm.apply(model, *x, 0.3), inputs)


def check_implicit(module: Any) -> None:
    model = MODELS["plane, Crank-Nicolson"]
    _, params, _, _ = make_system(model)
    conductivity, capacity = params.conductivity, params.heat_capacity
    check(lambda *x: module.Couple.apply(model, *x), (conductivity, capacity))
    matrix = [tensor(x.data, requires_grad=True) for x in module.Couple.apply(model, conductivity, capacity)]
    check(lambda *x: module.Relax.apply(model, *x), (params.source, *matrix))


def check_coupling(module: Any) -> None:
    random = np.random.default_rng(3)
    k, dk, w = random.uniform(0.5, 2, (4, 3)), random.standard_normal((4, 3)), random.standard_normal((2, 4, 3))
    pushed, pulled = module.jvp_couple_faces(k, 0.5, dk), module.adj_couple_faces(k, 0.5, w)
    moved = [module.couple_faces(k + step * dk, 0.5) for step in (1e-6, -1e-6)]
    np.testing.assert_allclose(pushed, (moved[0] - moved[1]) / 2e-6, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose((pulled * dk).sum(), (pushed * w).sum(), rtol=1e-12)
    own, coupling = random.uniform(1, 2, (4, 3)), module.couple_faces(k, 0.5)
    product = module.multiply(own, coupling, dk)
    np.testing.assert_allclose(module.CoupledCells(module.add_faces(own, coupling), coupling).solve(product), dk)
    adj_own, adj_coupling = module.adj_multiply(dk, w[0])
    np.testing.assert_allclose((adj_own * own).sum() + (adj_coupling * coupling).sum(), (w[0] * product).sum())


def check_faces(module: Any) -> None:
    random = np.random.default_rng(1)
    kinds = {"onto": "gain", "shared": {"g": "g"}, "constant": {"h": "h"}, "periodic": "wraps"}
    made = module.faces(leak, between={"d": "u"}, both={("a", "b"): "k"}, **kinds)
    for name in ("closed", "half a torus", "long rows of a torus"):
        grid = replace(GRIDS[name])
        u, k = random.standard_normal(grid.cells), random.uniform(0.5, 2, grid.cells)
        inputs = [tensor(values, requires_grad=True) for values in (u, k, 1.3)]
        found = made.apply(grid, *inputs, 0.7).data
        np.testing.assert_allclose(found, leak_by_numpy(grid, u, k, 1.3, 0.7), atol=1e-13)
        check(partial(apply_leak, made, grid), inputs)


def apply_leak(made: Any, grid: Any, *inputs: Any) -> Any:
    return made.apply(grid, *inputs, 0.7)


def check_sides(module: Any) -> None:
    random, grid = np.random.default_rng(2), replace(GRIDS["closed"])
    made = module.sides(inflow, onto="gain", cells={"u": "u", "k": "k"}, of_side={"outside": "o"}, shared={"g": "g"})
    u, k, outside = random.standard_normal(grid.cells), random.uniform(0.5, 2, grid.cells), random.standard_normal(4)
    inputs = [tensor(values, requires_grad=True) for values in (u, k, outside, 1.3)]
    found = made.apply(grid, *inputs).data
    np.testing.assert_allclose(found, inflow_by_numpy(grid, u, k, outside, 1.3), atol=1e-13)
    check(lambda *x: made.apply(grid, *x), inputs)


FACES = ("Faces._sign", "Faces._list_faces", "Faces._guard", "find_neighbours")
SIDES = ("Sides.load_adjoint", "find_side_faces")
SWEEPS = [
    Sweep(conduction, ("adj_conduction", "adj_side_conduction", "adj_warm"), check_conduction, errors=ALSO),
    Sweep(conduction, ("adj_couple", "adj_relax", "jvp_*"), check_implicit, errors=ALSO),
    Sweep(coupled_cells, ("adj_*", "jvp_*"), check_coupling, errors=ALSO),
    Sweep(import_module("simphys.substep.faces"), FACES, check_faces, errors=ALSO),
    Sweep(import_module("simphys.substep.sides"), SIDES, check_sides, errors=ALSO),
]
