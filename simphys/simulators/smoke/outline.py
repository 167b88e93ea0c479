"""An outline in 2-D for shape optimization: a few numbers change its shape but never its area.

A disc of radius r is stretched by exp(s) along x and by exp(-s) along y, and its radius varies with direction. In
coordinates X = x exp(-s), Y = y exp(s) from the centre, which undo the stretch, the outline is at distance R from the
centre in direction theta:

    R^2 = r^2 exp(g) / <exp(g)>,    g = sum_k a_k cos(k theta) + b_k sin(k theta),    k = 1 ... K

<.> is the mean over all directions. The area pi <R^2>, which the stretch preserves, is always that of the disc. The
signed distance is approximated as in shapes.py, with D = |(X, Y)| and the slope of D - R at the outline:

    phi = (D - R) / |(exp(-s) (cos theta + m sin theta), exp(s) (sin theta - m cos theta))|,    m = R'/R = g'/2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import Tensor
from simphys.simulator import Record

from .model import Smoke
from .shapes import coordinates

DIRECTIONS = 256
"""Number of directions over which exp(g) is averaged."""


@dataclass(frozen=True)
class Design(Record):
    """The parameters of an outline."""

    stretch: Tensor
    """Stretch s, []."""
    outline: Tensor
    """Modes a_k and b_k, [K, 2]."""


def distance(model: Smoke, centre: Sequence[float], radius: float, design: Design) -> Tensor:
    """Compute the signed distance of the cell centres to an outline, [*cells] [m], negative inside.

    It is a differentiable function of the design. centre and radius [m] are those of the disc for a design of 0.
    """
    dtype = design.outline.dtype
    x, y = ((each - c).astype(dtype) for each, c in zip(coordinates(model), centre, strict=True))
    wider = np.exp(design.stretch)
    x, y = x / wider, y * wider
    tiny = (1e-6 * model.spacing) ** 2  # avoids division by 0 at the centre
    far = np.sqrt(x * x + y * y + tiny)
    cos, sin = x / far, y / far
    g, slope = _evaluate_modes(design.outline, cos, sin)
    around = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    mean = np.mean(
        np.exp(_evaluate_modes(design.outline, np.cos(around).astype(dtype), np.sin(around).astype(dtype))[0])
    )
    m = 0.5 * slope
    steepness = np.sqrt(((cos + m * sin) / wider) ** 2 + ((sin - m * cos) * wider) ** 2)
    found: Tensor = (far - radius * np.exp(0.5 * g) / np.sqrt(mean)) / steepness
    return found


def _evaluate_modes(modes: Tensor, cos: Any, sin: Any) -> tuple[Any, Any]:
    """Compute g and g' in the directions of these cosines and sines."""
    g: Any = 0.0
    slope: Any = 0.0
    cos_k, sin_k = cos, sin
    for k in range(1, len(modes.data) + 1):
        a, b = modes[k - 1, 0], modes[k - 1, 1]
        g, slope = g + a * cos_k + b * sin_k, slope + k * (b * cos_k - a * sin_k)
        cos_k, sin_k = cos_k * cos - sin_k * sin, sin_k * cos + cos_k * sin
    return g, slope
