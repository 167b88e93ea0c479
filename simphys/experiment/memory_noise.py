"""Noise with a memory: an autoregressive process of first order, whose correlation time is known.

The noise n of a sensor with the correlation time tau has cov(n_i, n_j) = sigma^2 exp(-|t_i - t_j| / tau). Its residuals
r, divided by sigma, become independent by

    e_i = (r_i - rho_i r_j) / sqrt(1 - rho_i^2),    rho_i = exp(-(t_i - t_j) / tau)

with j the sample before i that has a weight; the first one stays. Then sum e^2 = r^T C^-1 r.
Source: Uhlenbeck and Ornstein 1930.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Memory:
    """Neighbours of the samples of one channel."""

    later: Array
    """Samples that have one before them [M]."""
    earlier: Array
    """The sample before each of these [M]."""
    rho: Array
    """Correlation with it [M]."""

    @property
    def rest(self) -> Array:
        """Standard deviation of what is new in each, [M]."""
        return np.sqrt(-np.expm1(2 * np.log(self.rho)))


def make_memories(times: Array, weights: Array, correlation_times: Sequence[float | None]) -> list[Memory | None]:
    """Find the neighbours of the samples that have a weight [N, C]; None for a channel without a memory."""
    made: list[Memory | None] = []
    for column, tau in enumerate(correlation_times):
        there = np.flatnonzero(weights[:, column] > 0)
        rho = None if tau is None else np.maximum(np.exp(-np.diff(times[there]) / tau), 1e-300)
        made.append(None if rho is None else Memory(there[1:], there[:-1], rho))
    return made


class Whiten(Function):
    """Residuals [N, C] of noise with a memory as independent ones; columns without a memory stay"""

    @staticmethod
    def forward(ctx: Context, memories: Sequence[Memory | None], r: Tensor) -> Array:
        ctx.memories = memories
        return whiten(memories, r.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[None, Array]:
        adj_r = np.array(adj.data)
        for column, memory in enumerate(ctx.memories):
            if memory is not None:
                share = adj.data[memory.later, column] / memory.rest
                adj_r[memory.later, column] = share
                adj_r[memory.earlier, column] -= memory.rho * share
        return None, adj_r

    @staticmethod
    def jvp(ctx: Context, _: None, dr: Array) -> Array:
        return whiten(ctx.memories, dr)


def whiten(memories: Sequence[Memory | None], r: Array) -> Array:
    """Make residuals [N, C] independent."""
    found = np.array(r)
    for column, memory in enumerate(memories):
        if memory is not None:
            new = r[memory.later, column] - memory.rho * r[memory.earlier, column]
            found[memory.later, column] = new / memory.rest
    return found


def colour(memories: Sequence[Memory | None], e: Array) -> Array:
    """Give independent noise [N, C] a memory: the reverse of `whiten`."""
    found = np.array(e)
    for column, memory in enumerate(memories):
        if memory is not None:
            for later, earlier, rho, rest in zip(memory.later, memory.earlier, memory.rho, memory.rest, strict=True):
                found[later, column] = rho * found[earlier, column] + rest * e[later, column]
    return found
