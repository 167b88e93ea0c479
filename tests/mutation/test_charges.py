"""Every term of the rules of charges is needed: of the element functions of each sub-step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import Mutant
from simphys.simulators.charges import field, force, integrate
from simphys.substep import per_element

from ..simulators.charges.systems import system, weights
from .sweep import Sweep, stale

EACH = 12
"""Number of mutants per rule in a sample: most compile a kernel."""


def check(function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1)
    dot_product_test(function, inputs, tolerance=1e-12)


def charge_force(module: Any) -> None:
    """Check the forces of all pairs, and the force of some pairs: only these have an adjoint of the second charge."""
    model, params, state = system(2, bodies=4)
    constants = params.coupling, params.softening
    check(lambda *x: module.ChargeForce.apply(model, *x), (state.position, params.charge, *constants))
    own = {"d": "difference", "q_i": "first_charge", "q_j": "second_charge"}
    of_pairs = per_element(module.pair_force, over="pairs", own=own, shared={"k": "coupling", "s": "softening"})
    charges = params.charge, weights((4,)).requires_grad_()
    check(lambda *x: of_pairs.apply(model, *x), (state.position, *charges, *constants))


def field_force(module: Any) -> None:
    model, params, _ = system(2, bodies=4)
    check(lambda *x: module.FieldForce.apply(model, *x), (params.charge, weights((2,), seed=2).requires_grad_()))


def integration(module: Any) -> None:
    model, params, state = system(2, bodies=4)
    inputs = (state.velocity, weights(state.position.shape).requires_grad_(), params.mass)
    check(lambda *x: module.Kick.apply(model, *x, 0.2), inputs)
    check(lambda *x: module.Drift.apply(model, *x, 0.3), state.tensors())


SWEEPS = [
    Sweep(force, ("pair_force", "adj_pair_force", "jvp_pair_force"), charge_force),
    Sweep(field, ("adj_field_force", "jvp_field_force"), field_force),
    Sweep(integrate, ("adj_kick", "jvp_kick", "adj_drift", "jvp_drift"), integration),
]


def test_what_is_listed_as_equivalent_exists() -> None:
    assert not stale(SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
