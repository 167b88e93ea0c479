"""Every term of the adjoints and tangents of elastic waves is needed, and so is every one of sums along axes."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.numerics import absorbing
from simphys.simulators.elastic import medium, motion, points
from simphys.substep import per_element

from ..simulators.elastic.systems import SMALL, make_system
from ..substep.test_along import MODELS, TERMS, check_band, draw
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 2
"""Number of mutants per rule in a sample: all compile kernels."""
ALSO = (*ERRORS, TypeError, RuntimeError, KeyError, AttributeError, NameError, IndexError)
"""Errors of mutants: of the compiler, and of generated text that names what does not exist."""


def check(function: Any, inputs: Any) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)
    dot_product_test(function, inputs)


def apply(substep: Any, *constants: Any) -> Any:
    return lambda *x: substep.apply(SMALL, *x, *constants)


def cells(count: int, shape: tuple[int, ...] = SMALL.cells) -> list[Any]:
    random = np.random.default_rng(2)
    return [tensor(random.uniform(0.5, 1.5, shape), requires_grad=True) for _ in range(count)]


def check_medium(module: Any) -> None:
    check(apply(module.Lame), cells(3))
    check(apply(module.Invert, np.random.default_rng(0).uniform(1, 2, SMALL.cells)), cells(1))


def check_layer(module: Any) -> None:
    own, constant = {"psi": "memory", "D": "slope"}, {"a": "profile_a", "b": "profile_b"}
    absorb = per_element(module.remember, own=own, constant=constant, results={"memory": "psi"}, over="layer_x")
    check(apply(absorb, *np.random.default_rng(0).uniform(1, 2, (2, *SMALL.layer_x))), cells(2, SMALL.layer_x))


def check_motion(module: Any) -> None:
    check(apply(module.Accelerate), cells(3))
    check(apply(module.Stretch, 0.7), cells(5))


def check_points(module: Any) -> None:
    _, params, _, control = make_system(SMALL, 1)
    assert control is not None
    strength = tensor(control.data[0], requires_grad=True)
    check(apply(module.Drive, np.array([[0.3, 0.5, 0.7], [1.0, 0.0, 2.0]])), (params.moment, strength))
    check(apply(module.Shift, np.full((2, 2), 0.3)), (params.source_position,))
    check(apply(module.Elongate, np.array([0.3, 0.7])), cells(3, (2,)))
    check(apply(module.Add, np.random.default_rng(0).uniform(1, 2, SMALL.cells)), cells(2))


def check_along(module: Any) -> None:
    check_band(module.find_band)
    for name in ("small", "rows in blocks"):
        model = MODELS[name]
        a, b, c = draw(model)
        terms = {name: module.Along(matrix, axis % 2, of) for name, (matrix, axis, of) in TERMS.items()}
        sums = module.along("sums", terms)
        expected = np.tensordot(model.first, a.data, (1, 0)) + b.data @ model.last.T + c.data @ model.widen.T
        np.testing.assert_allclose(sums.apply(model, a, b, c).data, expected, atol=1e-13)
        check(partial(sums.apply, model), (a, b, c))


RULES = ("adj_*", "jvp_*")
ALONG = ("SumsAlong._add_up", "SumsAlong.adjoint", "find_band")
SWEEPS = [
    Sweep(medium, RULES, check_medium, errors=ALSO),
    Sweep(absorbing, RULES, check_layer, errors=ALSO),
    Sweep(motion, RULES, check_motion, errors=ALSO),
    Sweep(points, RULES, check_points, errors=ALSO),
    Sweep(import_module("simphys.substep.along"), ALONG, check_along, errors=ALSO),
]
