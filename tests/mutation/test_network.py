"""Every term of the adjoints and tangents of neural controllers is needed: layers, and sensing."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.nn import layer as layers
from simphys.nn import linear, sensing
from simphys.simulators.mass_spring import sense
from simphys.substep import per_element, total

from ..simulators.mass_spring.systems import system
from .suite import *  # noqa: F403 - the tests of all sweeps
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
    model, _, state = system(2, nodes=4, springs=4, actuators=2, controlled=True)
    inputs = state.position, state.velocity, leaf(2)
    gradcheck(lambda *x: module.SenseNodes.apply(model, *x, 0.7), inputs, mode="projected", repeats=1)
    dot_product_test(lambda *x: module.SenseNodes.apply(model, *x, 0.7), inputs, tolerance=1e-9)


def centre_and_goal(module: Any) -> None:
    centre = total(module.share, over="rows", own={"x": "x"}, constant={"part": "part"}, results={"centre": "x"})
    offset = per_element(module.sense_goal, own={"c": "centre"}, constant={"goal": "goal"}, results={"offset": "c"})
    for run, x in (
        (lambda x: centre.apply(None, x, 0.25), leaf(4, 2)),
        (lambda c: offset.apply(None, c, np.array([0.5, 2.0])), leaf(2)),
    ):
        gradcheck(run, (x,), mode="projected", repeats=1)
        dot_product_test(run, (x,), tolerance=1e-9)


EACH = 6
"""Number of mutants per rule in a sample."""

SWEEPS = [
    Sweep(linear, ("Linear.backward", "Linear.jvp"), linear_layer),
    Sweep(layers, ("adj_*", "jvp_*"), layer),
    Sweep(sense, ("adj_*", "jvp_*"), sensed),
    Sweep(sensing, ("adj_*", "jvp_*"), centre_and_goal),
]
