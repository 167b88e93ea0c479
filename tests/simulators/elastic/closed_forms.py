"""Standing waves in a box with walls or a free top, in closed form: Rayleigh, compressional and shear waves."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from simphys.autograd import runtime, tensor
from simphys.simulators.elastic import Elastic, Params, State

Array = np.ndarray[Any, Any]
VP, VS, RHO = 1.9, 1.0, 1.3
WIDTH = 1.0
"""Width of the box [m], half a wavelength."""


def rayleigh_speed(vp: float = VP, vs: float = VS) -> float:
    """Root of (2 - c^2/vs^2)^2 = 4 sqrt(1 - c^2/vp^2) sqrt(1 - c^2/vs^2), Rayleigh 1885."""

    def dispersion(c: float) -> float:
        return float((2 - (c / vs) ** 2) ** 2 - 4 * np.sqrt(1 - (c / vp) ** 2) * np.sqrt(1 - (c / vs) ** 2))

    return float(brentq(dispersion, 0.5 * vs, (1 - 1e-9) * vs))


def rayleigh(field: str, *places: Array, t: float, k: float = np.pi / WIDTH) -> Array:
    """Standing Rayleigh wave: displacements u = -k U(z) sin kx cos wt and w = -q W(z) cos kx cos wt."""
    x, z = places
    omega = k * rayleigh_speed()
    q, s = np.sqrt(k**2 - (omega / VP) ** 2), np.sqrt(k**2 - (omega / VS) ** 2)
    a, b = 2 * q * s / (k**2 + s**2), 2 * k**2 / (k**2 + s**2)
    U, dU = np.exp(-q * z) - a * np.exp(-s * z), -q * np.exp(-q * z) + a * s * np.exp(-s * z)
    W, dW = np.exp(-q * z) - b * np.exp(-s * z), -q * np.exp(-q * z) + b * s * np.exp(-s * z)
    mu = RHO * VS**2
    lam = RHO * VP**2 - 2 * mu
    ex, ez = -(k**2) * U * np.cos(k * x), -q * dW * np.cos(k * x)
    moving, still = -omega * np.sin(omega * t), np.cos(omega * t)
    return {
        "vx": -k * U * np.sin(k * x) * moving,
        "vz": -q * W * np.cos(k * x) * moving,
        "sxx": ((lam + 2 * mu) * ex + lam * ez) * still,
        "szz": (lam * ex + (lam + 2 * mu) * ez) * still,
        "sxz": mu * (-k * dU + k * q * W) * np.sin(k * x) * still,
    }[field]


def box_mode(field: str, *x: Array, t: float, shear: bool, k: float = np.pi / WIDTH) -> Array:
    """Standing wave between walls: u_i = a_i sin kx_i cos kx_j ... cos wt, all a_i = 1; or their sum 0 for shear."""
    axes = "xyz" if len(x) == 3 else "xz"
    a = np.array([1.0, -3.0, 2.0][: len(x)] if shear else [1.0] * len(x))
    a[-1] -= a.sum() if shear else 0.0
    mu = RHO * VS**2
    lam, omega = RHO * VP**2 - 2 * mu, np.sqrt(len(x)) * k * (VS if shear else VP)
    odd = field[1:] if field[0] == "v" or field[1] != field[2] else ""
    shape = np.prod(
        np.broadcast_arrays(*[(np.sin if i in odd else np.cos)(k * y) for i, y in zip(axes, x, strict=True)]), axis=0
    )
    i, j = axes.index(field[1]), axes.index(field[-1])
    if field[0] == "v":
        return np.asarray(-omega * a[i] * np.sin(omega * t) * shape)
    size = lam * a.sum() + 2 * mu * a[i] if i == j else -mu * (a[i] + a[j])
    return np.asarray(k * size * np.cos(omega * t) * shape)


def be_still(field: str, *x: Array, t: float) -> Array:
    """No wave."""
    return np.zeros(np.broadcast_shapes(*[each.shape for each in x]))


def place(model: Elastic, field: str) -> tuple[Array, ...]:
    """x, z or x, y, z of a field [m], each along its axis of the grid."""
    places = [model.spacing * (np.arange(n) + at) for n, at in zip(model.cells, model.place(field), strict=True)]
    return tuple(np.meshgrid(*places, indexing="ij", sparse=True))


def build(model: Elastic, wave: Any) -> tuple[Params, State]:
    """Make the medium and the state of a wave at time 0; velocities are half a step earlier."""
    shapes, real = {**model.param_shapes(), **model.state_shapes()}, runtime.real_dtype()
    made = {name: np.zeros(shape) for name, shape in shapes.items()}
    made |= {name: np.full(model.cells, value) for name, value in (("vp", VP), ("vs", VS), ("density", RHO))}
    for field in (*model.velocities, *model.stress_components):
        time = -0.5 * model.dt if field[0] == "v" else 0.0
        made[field] = wave(field, *place(model, field), t=time) * model.mask(field)
    tensors = {name: tensor(value.astype(real)) for name, value in made.items()}
    return Params(**{n: tensors[n] for n in Params.names()}), State(**{n: tensors[n] for n in State.names()})
