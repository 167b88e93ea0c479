"""Helpers for adjoints of nested sub-steps: zeroed arrays, and adj_q from the adjoint by small rotations."""

import functools
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.simulator import Array

from . import rows


@functools.cache
@no_type_check
def orientation_adjoint(real: Any, dim: int) -> Any:
    """Return a loop over bodies that adds to adj_q [n, R] the contribution of adj_theta [n, S], by small rotations."""
    at, rotate = rows.functions(real, dim), rotation.functions(real, dim)

    @ti.func
    def add_turns(q: ti.template(), n, adj_theta: ti.template(), adj_q: ti.template()):
        for i in range(n):
            rotated = rotate.adj_turn(at.rotation_of(q, i), at.spin_of(adj_theta, i))
            for c in ti.static(range(rotate.rotations)):
                k = i * rotate.rotations + c
                adj_q[k] = adj_q[k] + rotated[c]

    return add_turns


def zeros_like(*tensors: Tensor) -> list[Array]:
    """Return zeroed adjoints to accumulate into."""
    return [np.zeros(tensor.shape, tensor.dtype) for tensor in tensors]
