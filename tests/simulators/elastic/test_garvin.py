"""An explosion beneath the free surface beside its closed form (Garvin 1956), at receivers on the surface.

By Cagniard's method, the velocities at the surface, at the distance x from a line explosion at the depth h, are

    v_z = -1 / (pi rho vp^2 vs^2) int q'(t - tau) Im(g / R dp/dtau) dtau
    v_x =  2 / (pi rho vp^2 vs^2) int q'(t - tau) Im(p b / R dp/dtau) dtau

    a^2 = 1/vp^2 - p^2     b^2 = 1/vs^2 - p^2     g = 1/vs^2 - 2 p^2     R = g^2 + 4 p^2 a b

along p = (x cosh y + i h sinh y) / (r vp), where tau = r cosh(y) / vp and r^2 = x^2 + h^2; q is the moment rate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.rollout import rollout
from simphys.simulators.elastic import Elastic

from .closed_forms import RHO, VP, VS, be_still, build

Array = np.ndarray[Any, Any]
FREQUENCY, DELAY = 1.6, 0.75
END = 2.6
SOURCE, RECEIVERS = (2.0, 0.4), (2.5, 3.4)
"""x and depth of the explosion, and x of the receivers [m]. Waves reach no other side and come back before the end."""


def pulse(t: Array) -> Array:
    """Ricker wavelet."""
    a = (np.pi * FREQUENCY * (t - DELAY)) ** 2
    return (1 - 2 * a) * np.exp(-a)


def slope(t: Array) -> Array:
    """Derivative of the wavelet."""
    w = np.pi * FREQUENCY
    a = (w * (t - DELAY)) ** 2
    return 2 * w**2 * (t - DELAY) * (2 * a - 3) * np.exp(-a)


def garvin(t: Array, x: float, h: float) -> Array:
    """Horizontal and vertical velocity at times t, [2, T], for moment rates xx = zz of `pulse`."""
    r = np.hypot(x, h)
    y = np.linspace(0, np.arccosh(END * VP / r), 4001)
    p, dp = (x * np.cosh(y) + 1j * h * np.sinh(y)) / (r * VP), (x * np.sinh(y) + 1j * h * np.cosh(y)) / (r * VP)
    a, b, g = np.sqrt(1 / VP**2 - p**2), np.sqrt(1 / VS**2 - p**2), 1 / VS**2 - 2 * p**2
    R = g**2 + 4 * p**2 * a * b
    scale = 1 / (np.pi * RHO * VP**2 * VS**2)
    driven = slope(t[:, None] - r / VP * np.cosh(y))
    responses = (2 * scale * (p * b / R * dp).imag, -scale * (g / R * dp).imag)
    return np.array([np.trapezoid(driven * response, y) for response in responses])


def compute_error(spacing: float) -> float:
    """Compute the largest difference of a velocity at the receivers, as part of the largest one."""
    sides = ("wall", "wall", "free", "wall")
    model = Elastic(
        (round(5.0 / spacing), round(2.8 / spacing)), spacing, 1.0, order=4, sides=sides, sources=1, forces=False,
        moments=True, receivers=2,
    )  # fmt: skip
    steps = int(np.ceil(END / (0.5 * model.largest_dt(VP))))
    model = replace(model, dt=END / steps)
    params, state = build(model, be_still)
    params = params.replace(
        source_position=[SOURCE], moment=[[1.0, 1.0, 0.0]], receiver_position=[[x, 0.0] for x in RECEIVERS]
    )
    times = model.dt * (np.arange(steps) + 0.5)
    motion = rollout(model, params, state, steps=steps, control=tensor(pulse(times)[:, None]), fields=["received"])
    assert motion.states is not None
    found = motion.states.received.data[1:].T.reshape(2, 2, steps)
    expected = np.stack([garvin(times, x - SOURCE[0], SOURCE[1]) for x in RECEIVERS], axis=1)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_an_explosion_beneath_the_surface_is_garvins() -> None:
    """P waves, converted ones and the Rayleigh wave; the error falls with the spacing."""
    coarse, fine = compute_error(0.05), compute_error(0.025)
    assert fine < 0.02
    assert coarse > 3.5 * fine
