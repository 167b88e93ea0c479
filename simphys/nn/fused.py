"""A network inside a fused kernel: the layers of `Network` as loops over arrays, for one input at a time.

    h = tanh(W1 x + b1)      y = tanh(W2 h + b2)

Adjoint, for g = adj_y, which is overwritten by the adjoint before tanh:

    g_y = (1 - y^2) g      g_h = (1 - h^2) W2^T g_y      adj_x = W1^T g_h

Tangent: dh = (1 - h^2) (dW1 x + W1 dx + db1), and so for dy.

The adjoints of the weights are sums over all steps: of g_y h^T and g_h x^T, and of g_y and g_h for the biases.

Rows and columns are padded with zeros to whole vectors; the padding stays zero. Products take several rows at a time,
which share the values read. Loops that only read are vectorized.
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from simphys.autograd import View
from simphys.autograd.kernels.runtime import ti

from ..simulator import Array, Arrays
from .layer import adj_tanh_of, jvp_tanh_of, tanh_of
from .network import Network

ROWS = 8
"""Number of matrix rows taken at a time in products with a vector."""
LANES = 16
"""Width of the vectors to which rows and columns are padded."""
INDEX = 2**30 - 1
"""Bit mask for indices: it proves to the compiler that they cannot overflow, which vectorization requires."""


@dataclass(frozen=True)
class Layout:
    """Memory layout of a padded network: rows of x, h and y, and all weights of a batch member in one array."""

    network: Network

    @property
    def inputs(self) -> int:
        return _round_up(self.network.inputs)

    @property
    def hidden(self) -> int:
        return _round_up(self.network.hidden)

    @property
    def outputs(self) -> int:
        """Padded size of y, with at least one entry of padding, which is zero."""
        return _round_up(self.network.outputs + 1)

    @property
    def offsets(self) -> dict[str, int]:
        """Offset of each part of the weights; each matrix is stored both as it is and transposed."""
        found, at = {}, 0
        for name, rows, columns in (
            ("W1", self.hidden, self.inputs),
            ("W1T", self.inputs, self.hidden),
            ("W2", self.outputs, self.hidden),
            ("W2T", self.hidden, self.outputs),
            ("b1", self.hidden, 1),
            ("b2", self.outputs, 1),
        ):
            found[name] = at
            at += rows * columns
        return {**found, "end": at}

    @property
    def size(self) -> int:
        """Length of the array with all weights of a member."""
        return self.offsets["end"]

    def pack(self, weights: Arrays) -> Array:
        """Pack weights [members, *shape] into one array [members, size]."""
        W1, W2 = weights["hidden_weight"], weights["output_weight"]
        members, (hidden, inputs), outputs = len(W1), W1.shape[1:], W2.shape[1]
        w1 = np.zeros((members, self.hidden, self.inputs), W1.dtype)
        w2 = np.zeros((members, self.outputs, self.hidden), W1.dtype)
        b1, b2 = np.zeros((members, self.hidden), W1.dtype), np.zeros((members, self.outputs), W1.dtype)
        w1[:, :hidden, :inputs], w2[:, :outputs, :hidden] = W1, W2
        b1[:, :hidden], b2[:, :outputs] = weights["hidden_bias"], weights["output_bias"]
        parts = (w1, w1.swapaxes(1, 2), w2, w2.swapaxes(1, 2), b1, b2)
        return np.concatenate([part.reshape(members, -1) for part in parts], axis=1)


def _round_up(size: int) -> int:
    return -(-size // LANES) * LANES


# fmt: off
@ti.func
def multiply(matrix: ti.template(), m, rows: ti.template(), columns: ti.template(),
             given: ti.template(), g, made: ti.template(), o):
    """Compute made[o + i] = sum over j of matrix[m + columns i + j] given[g + j]."""
    for block in range(rows // ROWS):
        from_, total = g & INDEX, [0.0 for _ in ti.static(range(ROWS))]
        row = [(m + (block * ROWS + r) * columns) & INDEX for r in ti.static(range(ROWS))]
        for j in range(columns):
            value = given[from_ + j]
            for r in ti.static(range(ROWS)):
                total[r] += matrix[row[r] + j] * value
        for r in ti.static(range(ROWS)):
            made[o + block * ROWS + r] = total[r]


@ti.func
def jvp_layer(
    matrix: ti.template(), dmatrix: ti.template(), dbias: ti.template(),
    rows: ti.template(), columns: ti.template(),
    x: ti.template(), dx: ti.template(), t: ti.template(), dt: ti.template(),
):
    """Compute dt = (1 - t^2) (dmatrix x + matrix dx + dbias)."""
    for i in range(rows):
        total = dbias[i]
        for j in range(columns):
            k = i * columns + j
            total += dmatrix[k] * x[j] + matrix[k] * dx[j]
        dt[i] = jvp_tanh_of(0.0, t[i], total)


def activations(real: Any) -> SimpleNamespace:
    """Return tanh of a layer in place, and its adjoint."""
    lanes = ti.types.vector(LANES, real)

    @ti.func
    def activate(weights: ti.template(), bias, size: ti.template(), values: ti.template(), o):
        """Overwrite values with tanh(values + bias)."""
        block = lanes(0.0)
        for k in range(size // LANES):
            to, b = (o + k * LANES) & INDEX, (bias + k * LANES) & INDEX
            for r in range(LANES):
                block[r] = tanh_of(values[to + r] + weights[b + r])
            for r in range(LANES):
                values[to + r] = block[r]

    @ti.func
    def adj_activate(size: ti.template(), values: ti.template(), o, adj: ti.template(), g):
        """Overwrite adj with adj (1 - values^2)."""
        block = lanes(0.0)
        for k in range(size // LANES):
            from_, to = (o + k * LANES) & INDEX, (g + k * LANES) & INDEX
            for r in range(LANES):
                block[r] = adj_tanh_of(0.0, values[from_ + r], adj[to + r])
            for r in range(LANES):
                adj[to + r] = block[r]

    return SimpleNamespace(activate=activate, adj_activate=adj_activate)


@functools.cache
def loops(real: Any, layout: Layout) -> SimpleNamespace:
    """Forward and adjoint loops of a network; its weights begin at index w, its rows at at_x, at_h, at_y."""
    at, X, H, Y, f = layout.offsets, layout.inputs, layout.hidden, layout.outputs, activations(real)

    @ti.func
    def forward(weights: ti.template(), w, x: ti.template(), at_x, h: ti.template(), at_h, y: ti.template(), at_y):
        multiply(weights, w + at["W1"], H, X, x, at_x, h, at_h)
        f.activate(weights, w + at["b1"], H, h, at_h)
        multiply(weights, w + at["W2"], Y, H, h, at_h, y, at_y)
        f.activate(weights, w + at["b2"], Y, y, at_y)

    @ti.func
    def adjoint(
        weights: ti.template(), w, h: ti.template(), at_h, y: ti.template(), at_y,
        g_y: ti.template(), at_gy, g_h: ti.template(), at_gh, adj_x: ti.template(), at_gx,
    ):
        """Pull adj_y, given in g_y, back to adj_x; g_y and g_h become the adjoints before tanh."""
        f.adj_activate(Y, y, at_y, g_y, at_gy)
        multiply(weights, w + at["W2T"], H, Y, g_y, at_gy, g_h, at_gh)
        f.adj_activate(H, h, at_h, g_h, at_gh)
        multiply(weights, w + at["W1T"], X, H, g_h, at_gh, adj_x, at_gx)

    @ti.func
    def tangent(
        weights: ti.template(), dweights: ti.template(), x: ti.template(), dx: ti.template(),
        h: ti.template(), dh: ti.template(), y: ti.template(), dy: ti.template(),
    ):
        """Push dweights and dx through to dh and dy, at known h and y; all are views."""
        W1, dW1, db1 = ti.static(View(weights, at["W1"]), View(dweights, at["W1"]), View(dweights, at["b1"]))
        W2, dW2, db2 = ti.static(View(weights, at["W2"]), View(dweights, at["W2"]), View(dweights, at["b2"]))
        jvp_layer(W1, dW1, db1, H, X, x, dx, h, dh)
        jvp_layer(W2, dW2, db2, Y, H, h, dh, y, dy)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)
# fmt: on
