"""Places where balls may start: apart from each other, and on the table.

Impacts are found between balls that are apart. Balls that overlap collide at once, whatever their radii and places:
these would get the gradient of a time of impact that is none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simphys.autograd.errors import UnphysicalValue
from simphys.simulator import Array, Arrays

ROUNDING = 1e-9
"""Relative overlap that is tolerated: balls that touch only because of rounded decimals do not overlap."""
SINGLE_ROUNDING = 1e-5
"""The same where numbers have single precision."""


def check_start(params: Arrays, state: Arrays) -> None:
    """Raise UnphysicalValue if balls overlap or are off the table; fields may have a batch axis. NaN passes."""
    position = state["position"]
    rounding = SINGLE_ROUNDING if position.dtype == np.float32 else ROUNDING
    fields = [params[name] for name in ("radius", "lower", "upper")]
    batch = np.broadcast_shapes(position.shape[:-2], *[values.shape[:-1] for values in fields])
    placed = np.broadcast_to(position, (*batch, *position.shape[-2:]))
    sizes, low, high = [np.broadcast_to(values, (*batch, values.shape[-1])) for values in fields]
    for at in np.ndindex(batch):
        found = [*find_overlaps(placed[at], sizes[at], rounding)]
        found += find_outside(placed[at], sizes[at], low[at], high[at], rounding) if low.size else []
        if found:
            raise UnphysicalValue(
                "billiards: start", "balls start apart from each other and on the table", *found[0][1:]
            )


def find_overlaps(position: Array, radius: Array, rounding: float = ROUNDING) -> Iterator[tuple[int, str, str]]:
    """Yield the second ball of each pair that overlaps, a description, and a remedy."""
    first, second = np.triu_indices(len(position), 1)
    distances, reaches = np.linalg.norm(position[second] - position[first], axis=1), radius[first] + radius[second]
    for pair in np.flatnonzero(distances < reaches * (1 - rounding)):
        i, j, distance, reach = first[pair], second[pair], distances[pair], reaches[pair]
        what = f"balls {i} and {j}, which overlap by {reach - distance:.3g}: their centres are {distance:.6g} apart"
        yield int(j), f"{what}, their radii sum up to {reach:.6g}", "Move them apart, or make them smaller."


def find_outside(
    position: Array, radius: Array, lower: Array, upper: Array, rounding: float = ROUNDING
) -> Iterator[tuple[int, str, str]]:
    """Yield each ball off the table, a description, and a remedy."""
    low, high = lower + radius[:, None], upper - radius[:, None]
    beyond = np.maximum(low - position, position - high).max(axis=1)
    for ball in np.flatnonzero(beyond > rounding * radius):
        what = f"ball {ball} at {position[ball].tolist()}, {beyond[ball]:.3g} too far out"
        limits = [", ".join([f"{each:.6g}" for each in corner[ball]]) for corner in (low, high)]
        yield int(ball), what, f"Its centre can be from [{limits[0]}] to [{limits[1]}]."
