"""Absorbing layers: convolutional perfectly matched layers for velocities and stresses.

In a layer, each derivative D across it is replaced by D + psi', see numerics/absorbing.py. The model's layer_speed c
[m/s] and layer_frequency f [Hz] give the profiles.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import runtime
from simphys.numerics.absorbing import profile, remember
from simphys.simulator import Array
from simphys.substep import per_element

from .model import Elastic

Absorb = {
    axis: per_element(
        remember,
        own={"psi": "memory", "D": "slope"},
        constant={"a": "profile_a", "b": "profile_b"},
        results={"memory": "psi"},
        over=f"layer_{axis}",
    )
    for axis in "xyz"
}
"""Memory of a derivative, by the axis that it is along."""


@runtime.cached(maxsize=32)
def profiles(model: Elastic, axis: str, place: float) -> tuple[Array, Array]:
    """Compute a and b in the layers across an axis, at faces (place 0) or in the middle of cells (1/2)."""
    line, number = model.axis(axis), model.axes.index(axis)
    position = line.layer_cells + place
    low, high = model.layer - position, position - (line.cells - model.layer)
    y = np.where(line.layer_cells >= line.cells - model.layer, high, low) / model.layer
    if not line.high:
        y = low / model.layer
    width, speed = model.layer * model.spacing, model.layer_speed
    a, b = profile(y, width=width, speed=speed, frequency=model.layer_frequency, dt=model.dt)
    shape = getattr(model, f"layer_{axis}")
    along = [-1 if each == number else 1 for each in range(len(shape))]
    found = [np.ascontiguousarray(np.broadcast_to(x.reshape(along), shape), runtime.real_dtype()) for x in (a, b)]
    return found[0], found[1]
