"""Loss terms as residuals r: the loss is 0.5 sum r^2, the same for least squares and for descent.

Each function returns one Tensor of residuals; `total` makes the scalar loss of several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from simphys.autograd import Context, Function, Tensor, ops
from simphys.optimize import RobustLoss


def misfit(predicted: Tensor, observed: npt.ArrayLike, weights: npt.ArrayLike) -> Tensor:
    """sqrt(weight) (predicted - observed): weights are 1/sigma^2, 0 for a missing sample."""
    dtype = predicted.dtype
    return (predicted - np.asarray(observed, dtype)) * np.sqrt(np.asarray(weights, dtype))


def huber(residuals: Tensor, delta: float) -> Tensor:
    """Residuals whose half square is Huber's function: r up to |r| = delta, sign(r) sqrt(2 delta |r| - delta^2) beyond.

    Both branches and their derivatives meet at |r| = delta, so there is no kink. (Huber 1964)
    """
    outside = np.abs(residuals.data) > delta
    # Where the inner branch holds, the root's argument is replaced by 1: its derivative there must stay finite.
    argument = ops.where(outside, 2 * delta * ops.abs(residuals) - delta**2, 1.0)
    return ops.where(outside, np.sign(residuals.data) * ops.sqrt(argument), residuals)


class Robust(Function):
    """Residuals whose half squares are the robust losses of others"""

    @staticmethod
    def forward(ctx: Context, loss: RobustLoss, residuals: Tensor) -> npt.NDArray[Any]:
        found, slope = loss.residual(residuals.data)
        ctx.slope = slope.astype(residuals.dtype)
        return found.astype(residuals.dtype)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        return None, adj.data * ctx.slope

    @staticmethod
    def jvp(ctx: Context, _: None, dresiduals: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(dresiduals * ctx.slope)


def robust(residuals: Tensor, loss: RobustLoss) -> Tensor:
    """Residuals whose half square is a loss that outliers do not rule (optimize/robust.py)."""
    return huber(residuals, loss.scale) if loss.kind == "huber" else Robust.apply(loss, residuals)


def mean_square(states: Tensor, target: Tensor | npt.ArrayLike, weight: float) -> Tensor:
    """Residuals of weight * mean over nodes of |state - target|^2, for states [n, dim]."""
    scale = math.sqrt(2.0 * weight / states.shape[-2])
    return (states - (target if isinstance(target, Tensor) else np.asarray(target, states.dtype))) * scale


def square_of_mean(states: Tensor, target: npt.ArrayLike, weight: float) -> Tensor:
    """Residuals of weight * |mean over nodes of state - target|^2, for states [n, dim]: sqrt(2 weight) of the way."""
    return (states.mean(axis=-2) - np.asarray(target, states.dtype)) * math.sqrt(2.0 * weight)


def running_sum(states: Tensor, target: Tensor | npt.ArrayLike, weight: float, dt: float) -> Tensor:
    """Residuals of weight * sum over steps of dt * mean over nodes of |state - target|^2, states [steps, n, dim]."""
    return mean_square(states, target, weight * dt)


def regularization(theta: Tensor, towards: npt.ArrayLike, weight: float) -> Tensor:
    """Residuals of weight * |theta - towards|^2, theta in units of its scale."""
    return (theta - np.asarray(towards, theta.dtype)) * math.sqrt(2.0 * weight)


def total(residuals: Sequence[Tensor]) -> Tensor:
    """0.5 * sum of squares of all residuals."""
    loss: Tensor | None = None
    for each in residuals:
        term = (each * each).sum() * 0.5
        loss = term if loss is None else loss + term
    assert loss is not None, "a loss has at least one term"
    return loss
