"""Every term of the rules of charges is needed: of the element functions of each sub-step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.numerics import drift, kick
from simphys.simulators.charges import motion
from simphys.substep import per_element

from ..simulators.charges.systems import system, weights
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 12
"""Number of mutants per rule in a sample: most compile a kernel."""


def check(function: Callable[..., Any], inputs: tuple[Tensor, ...], original: Callable[..., Any] | None = None) -> None:
    """Check the derivatives of a function, and its values by those of the original."""
    if original is not None:
        np.testing.assert_allclose(function(*inputs).data, original(*inputs).data, rtol=1e-13)
    gradcheck(function, inputs, mode="projected", repeats=1)
    dot_product_test(function, inputs, tolerance=1e-12)


def charge_force(module: Any) -> None:
    """Check the forces of all pairs, and the force of some pairs: only these have an adjoint of the second charge."""
    model, params, state = system(2, bodies=4)
    constants = params.coupling, params.softening
    inputs = state.position, params.charge, *constants
    check(partial(module.ChargeForce.apply, model), inputs, partial(motion.ChargeForce.apply, model))
    own = {"d": "difference", "q_i": "first_charge", "q_j": "second_charge"}
    of_pairs = per_element(module.pair_force, over="pairs", own=own, shared={"k": "coupling", "s": "softening"})
    charges = params.charge, weights((4,)).requires_grad_()
    check(partial(of_pairs.apply, model), (state.position, *charges, *constants))


def field_force(module: Any) -> None:
    model, params, _ = system(2, bodies=4)
    inputs = params.charge, weights((2,), seed=2).requires_grad_()
    check(partial(module.FieldForce.apply, model), inputs, partial(motion.FieldForce.apply, model))


def kicking(module: Any) -> None:
    model, params, state = system(2, bodies=4)
    inputs = (state.velocity, weights(state.position.shape).requires_grad_(), params.mass)
    own = {"v": "velocity", "f": "force", "m": "mass"}
    kicked = per_element(module.kick, over="bodies", own=own, constant={"h": "kick"}, results={"velocity": "v"})
    check(lambda *x: kicked.apply(model, *x, 0.2), inputs, lambda *x: motion.Kick.apply(model, *x, 0.2))


def drifting(module: Any) -> None:
    model, _, state = system(2, bodies=4)
    own = {"x": "position", "v": "velocity"}
    moved = per_element(module.drift, over="bodies", own=own, constant={"e": "drift"}, results={"position": "x"})
    check(lambda *x: moved.apply(model, *x, 0.3), state.tensors(), lambda *x: motion.Drift.apply(model, *x, 0.3))


SWEEPS = [
    Sweep(motion, ("pair_force", "adj_pair_force"), charge_force),
    Sweep(motion, ("field_force", "adj_field_force"), field_force),
    Sweep(kick, ("kick", "adj_kick"), kicking),
    Sweep(drift, ("drift", "adj_drift"), drifting),
]
