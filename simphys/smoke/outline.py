"""An outline in the plane that is sought: it changes by a few numbers, and keeps its area whatever they are.

    R(theta)^2 = r^2 exp(g) / <exp(g)>,    g(theta) = sum_k a_k cos(k theta) + b_k sin(k theta),    k = 1 ... K

R how far the outline is from the centre in the direction theta [m], r the radius of the disc that it is while all modes
are 0, <.> the mean over all directions. As the area inside is pi <R^2>, it is always that of the disc. The signed
distance of a place at the distance d from the centre is, as in shapes.py,

    phi = (d - R) / |grad (d - R)|,    |grad (d - R)|^2 = 1 + (R'/R)^2 at the outline,    R'/R = g'/2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..autograd import Tensor, ops
from ..simulator import Array, Record
from .model import Smoke
from .shapes import coordinates

DIRECTIONS = 256
"""Over which exp(g) is averaged."""


@dataclass(frozen=True)
class Design(Record):
    """What an obstacle follows from."""

    outline: Tensor
    """The modes of its outline, a_k and b_k, [K, 2]."""


def distance(model: Smoke, centre: Sequence[float], radius: float, modes: Tensor) -> Tensor:
    """Of the centres of cells to an outline, [*cells] [m], negative inside: a differentiable function of modes [K, 2].

    centre and radius [m]: of the disc that it is where all modes are 0.
    """
    x, y = (each - c for each, c in zip(coordinates(model), centre, strict=True))
    g, slope = _waves(modes, np.arctan2(y, x))
    around, _ = _waves(modes, 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS)
    reach = radius * ops.exp(0.5 * g) / np.sqrt(np.mean(np.exp(around)))
    found: Tensor = (np.hypot(x, y).astype(modes.dtype) - reach) / np.sqrt(1 + 0.25 * slope**2)
    return found


def _waves(modes: Tensor, towards: Array) -> tuple[Any, Any]:
    """g and g' in some directions."""
    k = 1.0 + np.arange(modes.shape[0])[:, None]
    phase = k * towards.reshape(-1)
    flat = ops.reshape(modes, (1, -1))
    waves = np.stack([np.cos(phase), np.sin(phase)], axis=1).reshape(-1, towards.size)
    slopes = np.stack([-k * np.sin(phase), k * np.cos(phase)], axis=1).reshape(-1, towards.size)
    made = [ops.matmul(flat, each.astype(modes.dtype)) for each in (waves, slopes)]
    return ops.reshape(made[0], towards.shape), ops.reshape(made[1], towards.shape)
