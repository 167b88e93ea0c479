"""Every term of the adjoints and tangents of leapfrog and layers is needed: sub-steps, fused loops, engine."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.simulators.wave import advance, curvature, layer
from simphys.simulators.wave.fused import adjoint, engine, grid_loops, loops
from simphys.simulators.wave.model import Wave

from ..simulators.wave.systems import DX, SMALL_PLANE, Case, case, weighted_sum
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep, use_engine

EACH = 2
"""Number of mutants per rule in a sample: most compile kernels."""
ALSO = (*ERRORS, TypeError, RuntimeError, AttributeError, IndexError)
"""Errors of mutants: of the compiler for swapped vectors and numbers, of Python for missing names and rows."""

EQUIVALENT: dict[str, str] = {}


def check_advance(module: Any) -> None:
    random, model = np.random.default_rng(0), Wave((4, 3), DX, 0.05)
    values = [random.normal(size=model.cells) for _ in range(3)] + [random.uniform(1, 2, model.cells)]
    inputs = [tensor(x, requires_grad=True) for x in values]
    gradcheck(lambda *x: module.advance(model, *x), inputs, mode="projected", repeats=1)


def check_curvature(module: Any) -> None:
    state = case(SMALL_PLANE, 1).state
    inputs = state.height, state.slope_memory, state.curvature_memory
    declared = {name: getattr(module, name) for name in ("SlopeMemory", "CurvatureMemory")}
    with patch.multiple(curvature, **declared):
        gradcheck(lambda *x: curvature.compute_curvature(SMALL_PLANE, *x), inputs, mode="projected", repeats=1)
        for i in range(3):  # each alone, as the others have no tangent
            alone = [tensor(x.data, requires_grad=i == n) for n, x in enumerate(inputs)]
            dot_product_test(lambda *x: curvature.compute_curvature(SMALL_PLANE, *x), alone, tolerance=1e-12)


def check_rollout(given: Case) -> None:
    """Check the derivative of a rollout with respect to all leaves, and its tangents."""

    def loss(*leaves: Tensor) -> Tensor:
        return weighted_sum(given.at(*leaves).rollout())

    gradcheck(loss, given.leaves, mode="projected", repeats=1)


def check_rollouts() -> None:
    """Check members with crossing layers, sources and receivers; with a shared speed, and with their own."""
    check_rollout(case(SMALL_PLANE, 4, batch=2, batched=("height", "speed", "control")))
    check_rollout(case(SMALL_PLANE, 4, batch=2, batched=("source_position",)))


@contextmanager
def fused_loops(module: Any) -> Iterator[None]:
    """Let fused loops call the rules of the module."""
    own = [getattr(module, func.__name__, func) for func in loops.ELEMENTS]
    rules = [
        mine if mine.__name__[:4] in ("adj_", "jvp_") else func for func, mine in zip(loops.ELEMENTS, own, strict=True)
    ]
    anew = runtime.cached(grid_loops._compile.__wrapped__)  # type: ignore[attr-defined]
    with patch.object(loops, "ELEMENTS", tuple(rules)), patch.object(grid_loops, "_compile", anew):
        yield


def with_layer(module: Any) -> None:
    """Check the sub-step, and fused loops with the element functions of `module`."""
    check_curvature(module)
    with fused_loops(module):
        check_rollouts()


def with_advance(module: Any) -> None:
    """Check the sub-step, and fused loops with the element functions of `module`."""
    check_advance(module)
    with fused_loops(module), patch.object(engine, "advance", module):
        check_rollouts()


def with_adjoint(module: Any) -> None:
    """Check fused reverse steps of `module`."""
    with patch.object(engine, "Adjoint", module.Adjoint):
        check_rollouts()


def with_engine(module: Any) -> None:
    with use_engine(Wave, module.WaveEngine):
        check_rollouts()


sweep_of = functools.partial(Sweep, errors=ALSO, equivalent=EQUIVALENT)
SWEEPS = [
    sweep_of(advance, ("adj_*", "jvp_*"), with_advance),
    sweep_of(layer, ("adj_*", "jvp_*"), with_layer),
    sweep_of(adjoint, ("Adjoint._load", "Adjoint._store"), with_adjoint),
    sweep_of(engine, ("WaveEngine.gradients",), with_engine),
]
