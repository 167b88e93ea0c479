"""An independent oracle: the same physics in plain NumPy and f64, and its gradient by central differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simphys.simulators.mass_spring.model import MassSpring

from .systems import NAMES

Inputs = dict[str, np.ndarray]


def simulate(model: MassSpring, inputs: Inputs, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity at all steps, [steps + 1, n, dim]."""
    assert tuple(inputs) == NAMES
    x, v = inputs["position"].copy(), inputs["velocity"].copy()
    free = ~model.pinned[:, None]
    mass, drag = inputs["mass"][:, None], inputs["drag"][:, None]
    xs, vs = [x], [v]
    for _ in range(steps):
        if model.integrator == "semi_implicit_euler":
            v = free * (np.exp(-drag * model.dt) * v + model.dt * forces(model, inputs, x, v) / mass)
            x = x + model.dt * v
        else:
            half = model.dt / 2
            smooth = {**inputs, "ground_friction": 0 * inputs["ground_friction"]}
            damped = free * np.exp(-drag * half) * rub(inputs, x, v, half)
            v = damped + free * half * forces(model, smooth, x, damped) / mass
            x = x + model.dt * v
            v = free * np.exp(-drag * half) * (v + half * forces(model, smooth, x, 2 * v - damped) / mass)
            v = rub(inputs, x, v, half)
        xs.append(x)
        vs.append(v)
    return np.array(xs), np.array(vs)


def rub(inputs: Inputs, x: np.ndarray, v: np.ndarray, time: float) -> np.ndarray:
    """Velocity after friction with the ground for a time at this depth."""
    normal = inputs["ground_stiffness"] * np.maximum(inputs["ground_height"] - x[:, -1:], 0)
    slower = np.exp(-inputs["ground_friction"] * normal / inputs["mass"][:, None] * time)
    return np.hstack([slower * v[:, :-1], v[:, -1:]])


def forces(model: MassSpring, inputs: Inputs, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """All forces on the nodes [n, dim]."""
    force = inputs["mass"][:, None] * inputs["gravity"]
    normal = inputs["ground_stiffness"] * np.maximum(inputs["ground_height"] - x[:, -1], 0)
    force[:, :-1] -= inputs["ground_friction"] * normal[:, None] * v[:, :-1]
    force[:, -1] += normal
    a, b = model.ends.T
    length = np.linalg.norm(x[b] - x[a], axis=1)
    axis = (x[b] - x[a]) / length[:, None]
    rate = np.sum(axis * (v[b] - v[a]), axis=1)
    pull = (inputs["stiffness"] * (length - inputs["rest_length"]) + inputs["damping"] * rate)[:, None] * axis
    np.add.at(force, a, pull)
    np.add.at(force, b, -pull)
    return force


def gradient(loss: Callable[[Inputs], float], inputs: Inputs) -> Inputs:
    """Central differences of `loss` with respect to every element of every input."""
    result = {}
    for name, values in inputs.items():
        result[name] = np.empty(values.shape)
        for index in np.ndindex(values.shape):
            step = 1e-5 * max(abs(float(values[index])), 0.1)
            sides = []
            for sign in (1, -1):
                moved = values.copy()
                moved[index] += sign * step
                sides.append(loss({**inputs, name: moved}))
            result[name][index] = (sides[0] - sides[1]) / (2 * step)
    return result
