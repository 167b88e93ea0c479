"""When nodes touch the penalty ground and leave it again, and where one stands exactly on the kink of its force.

Forces are those at the states: at the start of a step and, for velocity Verlet, at its end, too. A node is in contact
where its height x_up < h. Within a step that contact begins or ends in, it moves straight:

    t = (s + (h - x_up[s]) / (x_up[s + 1] - x_up[s])) dt                        [s]

The force is continuous, so that a gradient is the same from both sides of all but one kind of course: where the force
is taken at x_up = h to within rounding. There the derivative is that of a node above the ground (see external.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..autograd import runtime
from ..events import Event
from ..simulator import Array

if TYPE_CHECKING:
    from .model import Topology

ON_THE_KINK = "exactly at the ground's height, where the derivative taken is that without contact"
ROUNDINGS = 4.0
"""Heights this close, in units of the rounding of the largest one that a node reaches, are the same height."""


def ground_events(topology: Topology, params: Mapping[str, Array], position: Array) -> tuple[Event, ...]:
    """Contacts, releases and grazes of a motion's `position` [rows, n, dim], in the order of time."""
    if not params["ground_stiffness"] > 0:
        return ()
    ground = float(params["ground_height"])
    nodes = np.flatnonzero(~topology.pinned)
    height = np.asarray(position[:, nodes, -1], np.float64)
    below = height < ground
    size = np.maximum(np.abs(height).max(axis=0, initial=0), abs(ground))
    kink = np.abs(height - ground) <= ROUNDINGS * np.finfo(runtime.real_dtype()).eps * size
    if topology.stages[-1].drift > 0:
        kink[-1] = False  # no force is taken at the end
    steps = len(height) - 1
    found = []
    crossed = np.zeros_like(kink)
    for step, which in np.argwhere(below[1:] != below[:-1]):
        before, after = height[step : step + 2, which]
        crossed[step : step + 2, which] = True
        found.append(
            Event(
                step=int(step),
                time=float((step + (ground - before) / (after - before)) * topology.dt),
                kind="contact" if below[step + 1, which] else "release",
                what=f"node {nodes[which]}",
                one_sided=ON_THE_KINK if kink[step : step + 2, which].any() else "",
            )
        )
    for row, which in np.argwhere(kink & ~crossed):
        at = float(row * topology.dt)
        found.append(Event(min(int(row), steps - 1), at, "graze", f"node {nodes[which]}", ON_THE_KINK))
    return tuple(sorted(found, key=lambda event: event.time))
