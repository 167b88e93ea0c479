"""Gradients of rollouts of w1c's lattice, and of smaller ones of its kind, alone or as a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, no_grad, tensor
from simphys.rollout import Trajectory, rollout

from ..workloads.lattice import SETTINGS, System, system

ROBOT = 8, 4
"""Nodes along the axes of the small lattice: 32 nodes with 94 springs, the size of DiffTaichi's mass_spring robot."""
ROBOT_STEPS = 682


def cloth() -> System:
    """Make w1c's lattice: 16,384 nodes, 64,770 springs."""
    n = int(SETTINGS["size.n"])
    return system(SETTINGS, n, n)


def robots(members: int | None = None) -> System:
    """Make the small lattice; or a batch of them, each with its own stiffness, start and velocity."""
    alone = system(SETTINGS, *ROBOT)
    if members is None:
        return alone
    each = 1 + 0.1 * np.arange(members) / members

    def batched(x: Tensor) -> Tensor:
        values = each.reshape(-1, *[1] * x.ndim) * x.data
        return tensor(values, requires_grad=x.requires_grad)

    params = alone.params.replace(stiffness=batched(alone.params.stiffness))
    start = alone.start.replace(position=batched(alone.start.position), velocity=batched(alone.start.velocity))
    return alone._replace(params=params, start=start)


def pendulum() -> System:
    """Make a node, a pinned node and a spring."""
    return system(SETTINGS, 1, 2)


def forward(of: System, steps: int, **options: Any) -> None:
    """Run a rollout without recording. Options are those of `rollout`."""
    with no_grad():
        rollout(of.model, of.params, of.start, steps=steps, keep="final", **options)


def gradient(of: System, steps: int, **options: Any) -> Trajectory:
    """Run a rollout forward and backward; `gradients` reads the result. Options are those of `rollout`."""
    of.params.stiffness.grad = of.start.velocity.grad = None
    trajectory = rollout(of.model, of.params, of.start, steps=steps, keep="final", **options)
    error = trajectory.final.position - of.target
    (error * error).sum().backward()
    return trajectory


def gradients(of: System) -> tuple[bytes, bytes]:
    """Gradients with respect to stiffness and initial velocity, as bytes."""
    by_stiffness, by_velocity = of.params.stiffness.grad, of.start.velocity.grad
    assert by_stiffness is not None and by_velocity is not None
    return by_stiffness.numpy().tobytes(), by_velocity.numpy().tobytes()
