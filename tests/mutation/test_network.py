"""Every term of the adjoints of neural controllers is needed: layers, sensing, and both in a fused rollout."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import Mutant
from simphys.nn import fused, linear
from simphys.rollout import rollout
from simphys.simulators.mass_spring import controlled, sense
from simphys.simulators.mass_spring.model import Params, State

from ..simulators.mass_spring.systems import NAMES, controls, system
from .sweep import Sweep


def leaf(*shape: int, seed: int = 0) -> Tensor:
    return tensor(np.random.default_rng(seed).uniform(0.3, 1.7, shape), requires_grad=True)


def layer(module: Any) -> None:
    inputs = (leaf(3, 4), leaf(3, seed=1), leaf(2, 4, seed=2))
    gradcheck(module.Linear.apply, inputs, mode="projected", repeats=1)
    dot_product_test(module.Linear.apply, inputs, tolerance=1e-9)


def sensed(module: Any) -> None:
    model, _, state = system(2, nodes=4, springs=4, actuators=2, controlled=True)
    inputs = (state.position, state.velocity)
    gradcheck(lambda *x: module.Sense.apply(model, *x), inputs, mode="projected", repeats=1)


def moved(_: Any = None) -> None:
    """Check the derivative of the final state of a controlled rollout."""
    model, params, state = system(2, nodes=4, springs=4, actuators=2, dt=0.1, controlled=True)
    named = dict(zip(NAMES, (*state.tensors(), *params.tensors()), strict=True))
    wanted = ("position", "velocity", "hidden_weight", "output_weight")

    def run(*given: Tensor) -> Tensor:
        now = {**named, **dict(zip(wanted, given[:-1], strict=True))}
        now_params = Params(**{name: now[name] for name in Params.names()})
        start = State(now["position"], now["velocity"])
        return rollout(model, now_params, start, steps=2, control=given[-1], keep="final").final.position

    gradcheck(run, [*[named[name] for name in wanted], controls(model, 2)], mode="projected", repeats=1)


def with_loops(module: Any) -> None:
    """Check a rollout with the network of `module`."""
    with patch.object(controlled, "network_loops", module):
        controlled.adjoint_kernel.cache_clear()
        try:
            moved()
        finally:
            controlled.adjoint_kernel.cache_clear()


EACH = 6
"""Number of mutants per rule in a sample."""

SWEEPS = [
    Sweep(linear, ("Linear.backward", "Linear.jvp"), layer),
    Sweep(sense, ("functions.adj_*", "Sense.backward", "Sense.jvp"), sensed),
    Sweep(fused, ("functions.adj_*",), with_loops),
]


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant)
