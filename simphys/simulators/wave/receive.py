"""Receivers: values of the field at points anywhere between cells.

    received_r = sum_i weight_i(x_r) u_i

over the 4^dim cells around the receiver, by cubic convolution. A cell beyond a side is mapped to a cell inside, as the
field is extended there (`numerics/boundary.py`). Adjoint, with g = adj_received:

    adj_u_i = sum_r weight_i(x_r) g_r          adj_x_r = g_r sum_i u_i grad weight_i(x_r)

Source: Keys 1981; the adjoint is the transpose of the Jacobian.
"""

from __future__ import annotations

from simphys.autograd import Tensor
from simphys.substep import read_at

from .model import Wave

Receive = read_at("received", field="height", position="receiver_position", over="receivers")


def receive(model: Wave, height: Tensor, position: Tensor) -> Tensor:
    """Read a field [*cells] at the receivers' position [R, dim] [m]."""
    received: Tensor = Receive.apply(model, height, position)
    return received
