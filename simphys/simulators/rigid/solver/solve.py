"""Solve for the impulses of all rows: the phases of a step (phases.py)."""

import functools
from types import SimpleNamespace
from typing import Any

from simphys.substep import Fields, routine

from ..arrays import SETTING
from . import phases, phases_adjoint, phases_tangent


@functools.cache
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return all phases of a step, with their adjoint and their tangent."""
    return SimpleNamespace(
        forward=phases.loops(real, dim).solve_phases,
        adjoint=phases_adjoint.loops(real, dim).adj,
        tangent=phases_tangent.loops(real, dim).jvp,
    )


Solve = routine(
    "Solve",
    functions,
    Fields(
        given=(
            *("active", "first", "row", "target", "limit", "bounce", "inverse_mass", "spin_change", "moment"),
            *("time", "fraction", "twist", "velocity", "angular_velocity"),
        ),
        results=("new", "shift", "impulse"),
        tape=("order", "held", "record", "trace", "phase_target", "delta_v", "result"),
        work=("speed",),
        moving=("record", "speed", "phase_target", "delta_v"),
        choices=("active", "first"),
    ),
    SETTING,
    of_model=("bodies", "row_bodies", "joint_rows", "contacts", "sweeps", "dt"),
    repeats=True,
)
"""New twist [n, D], shift of poses [n, D] and impulses [PHASES, N].

`active` [M] is the state of contacts, `first` [n] the first impact that reaches each body (time_of_impact.py). Of row
[N, W] only the directions are read; `twist` are the velocities after the forces, `velocity` and `angular_velocity`
those before.
"""
