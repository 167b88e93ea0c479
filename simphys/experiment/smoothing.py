"""Unknowns of a grid that change smoothly: what is sought is a Gaussian's average of what a search changes.

    y = s + P G P^T (x - s)

s the start [m], x what the search changes, P the entries of the field that are sought, G the Gaussian with reflection
at the field's sides: a symmetric map, whose rows add up to 1. So P G P^T is symmetric, and with g = adj_y

    adj_x = P G P^T g
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Smoothing:
    """Smoothing of an unknown field."""

    shape: tuple[int, ...]
    """Shape of the field."""
    entries: Array
    """Flat indices of the sought entries, [m]."""
    spread: float
    """The Gaussian's standard deviation in cells."""
    start: Array
    """Values from which changes count, [m]."""

    def averaged(self, change: Array) -> Array:
        """P G P^T of a change [m]."""
        from scipy.ndimage import gaussian_filter

        field = np.zeros(self.shape, change.dtype)
        field.reshape(-1)[self.entries] = change
        return np.asarray(gaussian_filter(field, self.spread, mode="reflect", truncate=8.0)).reshape(-1)[self.entries]

    @cached_property
    def deviation(self) -> Array:
        """Standard deviations [m] of the average of independent numbers of deviation 1: less than 1, more at sides."""
        from scipy.ndimage import gaussian_filter1d

        variance = np.zeros(self.shape)
        variance.reshape(-1)[self.entries] = 1.0
        for axis, count in enumerate(self.shape):
            along = gaussian_filter1d(np.eye(count), self.spread, axis=0, mode="reflect", truncate=8.0)
            variance = np.moveaxis(np.tensordot(along**2, variance, (1, axis)), 0, axis)
        return np.sqrt(variance.reshape(-1)[self.entries])

    def around_start(self, values: Array) -> Array:
        """s + P G P^T (x - s)."""
        start = self.start.astype(values.dtype)
        return start + self.averaged(values - start)


class Smooth(Function):
    """Smoothed values from those that a search changes, both [m]."""

    @staticmethod
    def forward(ctx: Context, smoothing: Smoothing, x: Tensor) -> Array:
        ctx.smoothing = smoothing
        return smoothing.around_start(x.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        return None, ctx.smoothing.averaged(adj.data)

    @staticmethod
    def jvp(ctx: Context, _: None, dx: Array) -> Array:
        return np.asarray(ctx.smoothing.averaged(dx))
