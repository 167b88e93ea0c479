"""Check of what enters the loss beside the motion: the sensor, parameters that place its markers, and controls.

Behind the motion, which is fixed, the loss is a function of the first two alone. Before it, the signal that drives a
scene is a function of the numbers of its control; the rest of the check covers the signal. A delay has kinks, where a
sample falls on a time step: delays are checked a part of a step off their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from simphys.autograd import Tensor, grad, tensor
from simphys.experiment.observe import Observations
from simphys.experiment.scene import Scene
from simphys.rollout import Trajectory
from simphys.simulator import Array

from .certificate import Statement
from .derivatives import NEGLIGIBLE, compare_differences, make_statements

OFF_KINKS = 0.31
"""Part of a time step that is added to delays."""
DELAYS = ("channel_delay", "control_delay")

Leaf = tuple[str, str]
"""Part of a scene, and name of a field in it."""
Found = tuple[Array, list[Statement]]
"""Gradient by a leaf, and statements about it."""


def check_sensor(scene: Scene, trajectory: Trajectory, *, seed: int) -> Iterator[Found]:
    """Make statements about the sensor's numbers, and about parameters that place markers, as far as they matter."""
    seen = scene.observations
    if scene.sensor is None or not isinstance(seen, Observations):
        return
    parts = ["sensor", *["params"] * any(channel.is_derived for channel in seen.channels)]
    leaves = _list_leaves(scene, parts)

    def loss_of(values: dict[Leaf, Tensor]) -> Tensor:
        return _with_leaves(scene, values).loss(trajectory)

    yield from _compare(leaves, loss_of, seed)


def check_controls(scene: Scene, *, seed: int) -> Iterator[Found]:
    """Make statements about the numbers of a control, for a random combination of its signal."""
    if scene.controls is None or not (leaves := _list_leaves(scene, ["controls"])):
        return
    shape = scene.controls.signal(scene.steps).shape
    weights = np.random.default_rng(seed).standard_normal(shape)

    def sum_of(values: dict[Leaf, Tensor]) -> Tensor:
        controls: Any = _with_leaves(scene, values).controls
        total: Tensor = (controls.signal(scene.steps) * weights).sum()
        return total

    yield from _compare(leaves, sum_of, seed)


def _compare(leaves: dict[Leaf, Tensor], compute: Callable[[dict[Leaf, Tensor]], Tensor], seed: int) -> Iterator[Found]:
    """Compare the gradient of a number by each leaf that matters with finite differences."""
    number = compute(leaves)
    if not number.requires_grad:  # channels show components as they are
        return
    found = grad(number, list(leaves.values()), allow_unused=True)
    gradients = {leaf: g.data for leaf, g in zip(leaves, found, strict=True) if g is not None}
    effects = {leaf: _effect(leaves[leaf].data, gradient) for leaf, gradient in gradients.items()}
    for leaf, gradient in gradients.items():
        if effects[leaf] <= NEGLIGIBLE * max(effects.values()):
            continue

        def of_leaf(value: Tensor, leaf: Leaf = leaf) -> Tensor:
            return compute({**leaves, leaf: value})

        part, name = leaf
        title = f"{name}, in markers" if part == "params" else name
        yield gradient, list(make_statements(title, compare_differences(of_leaf, leaves[leaf], seed)))


def _list_leaves(scene: Scene, parts: list[str]) -> dict[Leaf, Tensor]:
    """Make leaves of all numbers of some parts of a scene."""
    made = {}
    for part in parts:
        for name, values in getattr(scene, part).arrays().items():
            if values.size:
                off = OFF_KINKS * scene.dt if name in DELAYS else 0.0
                made[part, name] = tensor(values + off, requires_grad=True)
    return made


def _with_leaves(scene: Scene, leaves: dict[Leaf, Tensor]) -> Scene:
    changed: dict[str, Any] = {}
    for part in {part for part, _ in leaves}:
        own = {name: value for (where, name), value in leaves.items() if where == part}
        changed[part] = getattr(scene, part).replace(**own)
    return replace(scene, **changed)


def _effect(values: Array, gradient: Array) -> float:
    """Estimate the change of the number if a leaf were doubled, or from 0 became 1."""
    return float(np.linalg.norm(gradient) * (np.linalg.norm(values) or 1.0))
