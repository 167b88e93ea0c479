"""The gradient of the loss along time, recorded."""

from __future__ import annotations

import math

import numpy as np

from simphys.autograd.errors import InputError
from simphys.experiment.scene import Scene
from simphys.record import AnyRecorder
from simphys.rollout import BlowUp

ADJOINT_BYTES = 1 << 30
"""Largest gradient along time that is recorded."""


def record_adjoint(recorder: AnyRecorder, scene: Scene) -> None:
    """Record the gradient of the loss with respect to every `output.every`-th state.

    Nothing is recorded if that takes more than ADJOINT_BYTES or does not fit into runtime.memory. Errors: BlowUp.
    """
    shapes = scene.moving_shapes()
    itemsize = scene.state.tensors()[0].dtype.itemsize
    if (scene.steps + 1) * itemsize * sum(math.prod(shape) for shape in shapes.values()) > ADJOINT_BYTES:
        return
    # The state's gradient needs a recorded graph, so something must require one.
    start = {
        name: value.detach().requires_grad_()
        for name, value in zip(scene.state.names(), scene.state.tensors(), strict=True)
    }
    try:
        trajectory = scene.rollout(state=scene.state.replace(**start), keep_adjoint=True)
    except BlowUp:
        raise
    except InputError:
        if not scene.config.runtime.limited:
            raise
        return
    scene.loss(trajectory).backward()
    steps = np.arange(0, scene.steps + 1, scene.config.output.every)
    chosen = scene.config.output.fields
    along = {n: getattr(trajectory.adjoint, n) for n, v in start.items() if v.size and (chosen is None or n in chosen)}
    if scene.members is not None:
        along = {name: np.moveaxis(values, 1, 0) for name, values in along.items()}
    adjoint = {name: values[steps] for name, values in along.items()}
    recorder.write("adjoint", step=steps, time=steps * scene.dt, **adjoint)
