"""The change of the temperature in an implicit step, which one linear system gives.

With r = -K T + B T_s + q, the heating before the step, the theta rule C (T' - T) / dt = r - theta K (T' - T)
is solved for x = T' - T:

    A x = r,      A = C / dt + theta K(k)

K(k) x is what a cell loses to its neighbours, and to sides at 0: the negative of `heat_cells`. A is symmetric. Adjoint,
by one more solve, with w = A^-1 adj_x:

    adj_r = w      adj_C = -w x / dt      adj_k = theta (d heat_cells(x, k) / dk)^T w

Source: Hairer and Wanner, Solving Ordinary Differential Equations II, section IV.3, for theta = 1 and 1/2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor, jvp, runtime, tensor, vjp
from simphys.numerics.coupled_cells import CoupledCells, couple_cells
from simphys.simulator import Array

from .conduction import Conduction, SideConduction
from .model import Heat


def heat_cells(model: Heat, temperature: Tensor, conductivity: Tensor, outside: Tensor | None = None) -> Tensor:
    """Compute the heating [*cells] [W/m^3] by neighbours, and by sides at temperatures [2 dim], 0 by default."""
    heating = Conduction.apply(model, temperature, conductivity, model.spacing)
    if model.open_sides:
        outside = tensor(np.zeros(2 * model.dim, runtime.real_dtype())) if outside is None else outside
        heating = heating + SideConduction.apply(model, temperature, conductivity, outside, model.spacing)
    return heating


class Relax(Function):
    """Change [*cells] [K] of the temperature from heating [W/m^3], conductivity and heat capacity, all [*cells]."""

    @staticmethod
    def forward(ctx: Context, model: Heat, heating: Tensor, conductivity: Tensor, capacity: Tensor) -> Array:
        diagonal, coupling = couple_cells(conductivity.data, model.spacing, model.open_sides)
        ctx.matrix = CoupledCells(capacity.data / model.dt + model.theta * diagonal, model.theta * coupling)
        ctx.model, change = model, ctx.matrix.solve(heating.data)
        ctx.save_for_backward(conductivity, change)
        return change

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        model, (conductivity, change) = ctx.model, ctx.saved_tensors
        w = ctx.matrix.solve(adj.data)
        _, pull = vjp(lambda k: heat_cells(model, change, k), conductivity)
        return None, w, pull(model.theta * w)[0], -w * change.data / model.dt

    @staticmethod
    def jvp(ctx: Context, _: None, dheating: Array, dconductivity: Array, dcapacity: Array) -> Array:
        model, (conductivity, change) = ctx.model, ctx.saved_tensors
        pushed = jvp(lambda k: heat_cells(model, change, k), conductivity, [dconductivity])[1][0]
        solved: Array = ctx.matrix.solve(dheating + model.theta * pushed - dcapacity * change.data / model.dt)
        return solved
