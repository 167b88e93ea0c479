"""Sources and receivers between cells: test inputs, and checks that the fused loops agree with the sub-steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import jvp, runtime, tensor
from simphys.simulators.wave.model import Wave

DX = 0.4
Array = np.ndarray[Any, Any]


def sources(model: Wave, seed: int = 0) -> tuple[Array, Array]:
    """Draw strengths, and positions inside of the grid and up to half a cell beyond."""
    random = np.random.default_rng(seed)
    S, cells = len(model.sources), np.array(model.cells)
    return random.normal(size=S), random.uniform(-0.5, cells - 0.5, size=(S, model.dim)) * DX


def receivers(model: Wave, seed: int = 0) -> tuple[Array, Array]:
    """Draw a field, and positions inside of the grid and up to half a cell beyond."""
    random = np.random.default_rng(seed)
    places = random.uniform(-0.5, np.array(model.cells) - 0.5, size=(model.receivers, model.dim))
    return random.normal(size=model.cells), places * DX


def sources_agree(module: Any, model: Wave) -> None:
    """Compare both for a field and a kappa with other memory layouts and offsets, with adjoints and tangents."""
    random = np.random.default_rng(3)
    S, dim, real = len(model.sources), model.dim, runtime.real()
    field, medium, size = (9, 10, 1), (2, 1, 7), 70  # (origin, strides) of a field with a border; by columns
    loops = module.kernels(real, model.cells, model.boundaries, field, medium)
    plane, (strength, position), (dstrength, dposition) = module.plane_axes(model), sources(model), sources(model, 4)

    def at(place: Any, offset: int) -> Array:
        i, j = np.indices(model.cells)
        return offset + place[0] + i * place[1] + j * place[2]

    def pad(values: Array, offset: int) -> Array:
        return np.concatenate([random.normal(size=offset), values.ravel()])

    u, kappa, dkappa = (random.normal(size=size) for _ in range(3))
    x, q = tensor(position, requires_grad=True), tensor(strength, requires_grad=True)
    density = module.SourceTerm.apply(model, q, x)
    k, dk = kappa[at(medium, 1)], dkappa[at(medium, 5)]

    new = u.copy()
    loops.inject(new, kappa, pad(strength, 3), pad(position, 4), plane, DX, 2, 1, 3, 4)
    expected = u.copy()
    expected[at(field, 2)] += k * density.data
    np.testing.assert_allclose(new, expected, rtol=1e-13)

    adj_u = random.normal(size=size)
    (density * tensor(k * adj_u[at(field, 2)])).sum().backward()
    assert q.grad is not None and x.grad is not None
    g = np.zeros(size)
    g[at(field, 6)] = k * adj_u[at(field, 2)]
    adj_strength, adj_position = np.ones(S + 5), np.ones(S * dim + 6)
    loops.adj_inject(g, pad(strength, 3), pad(position, 4), plane, adj_strength, adj_position, DX, 6, 3, 4, 5, 6)
    np.testing.assert_allclose(adj_strength, 1 + np.concatenate([np.zeros(5), q.grad.data]), rtol=1e-13)
    np.testing.assert_allclose(adj_position, 1 + np.concatenate([np.zeros(6), x.grad.data.ravel()]), rtol=1e-13)

    adj_kappa, expected = np.ones(size), np.ones(size)
    loops.adj_inject_kappa(adj_u, pad(strength, 3), pad(position, 4), plane, adj_kappa, DX, 2, 3, 4, 1)
    expected[at(medium, 1)] += density.data * adj_u[at(field, 2)]
    np.testing.assert_allclose(adj_kappa, expected, rtol=1e-13)

    du = u.copy()
    loops.jvp_inject(
        du, kappa, pad(strength, 3), pad(position, 4), plane, dkappa, pad(dstrength, 6), pad(dposition, 7), DX,
        2, 1, 3, 4, 5, 6, 7,
    )  # fmt: skip
    _, (ddensity,) = jvp(lambda *each: module.SourceTerm.apply(model, *each), (q, x), (dstrength, dposition))
    expected = u.copy()
    expected[at(field, 2)] += dk * density.data + k * ddensity
    np.testing.assert_allclose(du, expected, rtol=1e-13)


def receivers_agree(module: Any, model: Wave) -> None:
    """Compare both for a field with another memory layout and offsets, with adjoints and tangents."""
    random = np.random.default_rng(3)
    R, dim, size = model.receivers, model.dim, 80
    field = (9, 10, 1)  # (origin, strides) of a field with a border
    loops = module.kernels(runtime.real(), model.cells, model.boundaries, field)
    (height, position), (dheight, dposition) = receivers(model), receivers(model, 4)

    def pad(values: Array, offset: int) -> Array:
        return np.concatenate([random.normal(size=offset), values.ravel()])

    i, j = np.indices(model.cells)
    at = field[0] + field[1] * i + j
    u, du = random.normal(size=size), random.normal(size=size)
    u[at + 2], du[at + 3] = height, dheight
    inputs = tensor(height, requires_grad=True), tensor(position, requires_grad=True)
    received = module.Receive.apply(model, *inputs)

    out = np.zeros(R + 5)
    loops.receive(u, pad(position, 4), out, R, DX, 2, 4, 5)
    np.testing.assert_allclose(out, np.concatenate([np.zeros(5), received.data]), rtol=1e-13)

    g = random.normal(size=R)
    received.backward(tensor(g))
    assert inputs[0].grad is not None and inputs[1].grad is not None
    adj_u, adj_position, expected, scale = np.ones(size), np.ones(R * dim + 7), np.ones(size), random.normal(size=size)
    loops.adj_receive(u, pad(position, 4), pad(g, 5), scale, adj_u, adj_position, R, DX, 2, 4, 5, 3, 6, 7)
    expected[at + 6] += scale[at + 3] * inputs[0].grad.data
    np.testing.assert_allclose(adj_u, expected, rtol=1e-13)
    np.testing.assert_allclose(adj_position, 1 + np.concatenate([np.zeros(7), inputs[1].grad.data.ravel()]), rtol=1e-13)

    dout = np.zeros(R + 6)
    loops.jvp_receive(u, pad(position, 4), du, pad(dposition, 5), dout, R, DX, 2, 4, 3, 5, 6)
    _, (expected,) = jvp(lambda *each: module.Receive.apply(model, *each), inputs, (dheight, dposition))
    np.testing.assert_allclose(dout, np.concatenate([np.zeros(6), expected]), rtol=1e-13)
