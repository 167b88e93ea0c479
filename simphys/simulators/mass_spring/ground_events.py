"""Ground events: contact and release of nodes at the penalty ground, and states exactly on the kink of its force.

Forces are evaluated at the states: at the start of a step and, for velocity Verlet, also at its end. A node is in
contact while its height x_up < h. Contact begins or ends during a step s at the linearly interpolated time

    t = (s + (h - x_up[s]) / (x_up[s + 1] - x_up[s])) dt                        [s]

The force is continuous. The gradient is therefore the same from both sides, unless the force is evaluated at x_up = h
to within rounding. There the derivative is that of a node above the ground (see external.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.simulator.events import Event

if TYPE_CHECKING:
    from .model import MassSpring

ON_THE_KINK = "exactly at the ground's height, where the derivative taken is that without contact"
ROUNDINGS = 4.0
"""Tolerance within which two heights count as equal, in rounding units of the largest height that a node reaches."""


def find_events(model: MassSpring, params: Arrays, states: Arrays, control: Array | None = None) -> tuple[Event, ...]:
    """Contacts, releases and grazes of a motion with these states [rows, n, dim], in order of time."""
    if not params["ground_stiffness"] > 0:
        return ()
    position = states["position"]
    ground = float(params["ground_height"])
    nodes = np.flatnonzero(~model.pinned)
    height = np.asarray(position[:, nodes, -1], np.float64)
    below = height < ground
    size = np.maximum(np.abs(height).max(axis=0, initial=0), abs(ground))
    kink = np.abs(height - ground) <= ROUNDINGS * np.finfo(runtime.real_dtype()).eps * size
    if model.stages[-1].drift > 0:
        kink[-1] = False  # no force is evaluated at the last state
    steps = len(height) - 1
    found = []
    crossed = np.zeros_like(kink)
    for step, which in np.argwhere(below[1:] != below[:-1]):
        before, after = height[step : step + 2, which]
        crossed[step : step + 2, which] = True
        found.append(
            Event(
                step=int(step),
                time=float((step + (ground - before) / (after - before)) * model.dt),
                kind="contact" if below[step + 1, which] else "release",
                what=f"node {nodes[which]}",
                one_sided=ON_THE_KINK if kink[step : step + 2, which].any() else "",
            )
        )
    for row, which in np.argwhere(kink & ~crossed):
        at = float(row * model.dt)
        found.append(Event(min(int(row), steps - 1), at, "graze", f"node {nodes[which]}", ON_THE_KINK))
    return tuple(sorted(found, key=lambda event: event.time))
