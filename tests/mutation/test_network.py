"""Every term of the adjoints and tangents of neural controllers is needed: layers, and sensing."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import Mutant
from simphys.nn import layer as layers
from simphys.nn import linear
from simphys.simulators.mass_spring import sense

from ..simulators.mass_spring.systems import system
from .sweep import Sweep


def leaf(*shape: int, seed: int = 0) -> Tensor:
    return tensor(np.random.default_rng(seed).uniform(0.3, 1.7, shape), requires_grad=True)


def linear_layer(module: Any) -> None:
    inputs = (leaf(3, 4), leaf(3, seed=1), leaf(2, 4, seed=2))
    gradcheck(module.Linear.apply, inputs, mode="projected", repeats=1)
    dot_product_test(module.Linear.apply, inputs, tolerance=1e-9)


def layer(module: Any) -> None:
    inputs = (leaf(3, 4), leaf(3, seed=1), leaf(4, seed=2))
    gradcheck(lambda *x: module.Layer.apply(None, *x), inputs, mode="projected", repeats=1)
    dot_product_test(lambda *x: module.Layer.apply(None, *x), inputs, tolerance=1e-9)


def sensed(module: Any) -> None:
    """Check centre, nodes and goal by themselves."""
    model, _, state = system(2, nodes=4, springs=4, actuators=2, controlled=True)
    x, v = state.position, state.velocity
    centre = leaf(2)
    for run, inputs in (
        (lambda *given: module.Centre.apply(model, *given, 0.25), (x,)),
        (lambda *given: module.SenseNodes.apply(model, *given, 0.7), (x, v, centre)),
        (lambda *given: module.SenseGoal.apply(model, *given, model.goal), (centre,)),
    ):
        gradcheck(run, inputs, mode="projected", repeats=1)
        dot_product_test(run, inputs, tolerance=1e-9)


EACH = 6
"""Number of mutants per rule in a sample."""

SWEEPS = [
    Sweep(linear, ("Linear.backward", "Linear.jvp"), linear_layer),
    Sweep(layers, ("adj_*", "jvp_*"), layer),
    Sweep(sense, ("adj_*", "jvp_*"), sensed),
]


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant)
