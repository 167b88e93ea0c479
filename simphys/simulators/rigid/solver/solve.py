"""Solve for the impulses of all rows: the phases of a step (phases.py)."""

from simphys.substep import Fields, Functions, routine

from ..arrays import SETTING
from .phases import solve_phases
from .phases_adjoint import adj_solve_phases

Solve = routine(
    "Solve",
    Functions(solve_phases, adj_solve_phases),
    Fields(
        given=(
            *("active", "first", "jacobian", "response", "target", "limit", "bounce"),
            *("time", "fraction", "twist", "velocity", "angular_velocity"),
        ),
        results=("new", "shift", "impulse"),
        tape=("order", "held", "record", "trace", "phase_target", "delta_v", "result"),
        work=("speed",),
        moving=("record", "speed", "phase_target", "delta_v"),
        choices=("active", "first"),
    ),
    SETTING,
    of_model=("bodies", "row_bodies", "joint_rows", "contacts", "sweeps", "dt", "dim", "freedoms", "beyond"),
)
"""New twist [n, D], shift of poses [n, D] and impulses [PHASES, N].

`active` [M] is the state of contacts, `first` [n] the first impact that reaches each body (time_of_impact.py); `twist`
are the velocities after the forces, `velocity` and `angular_velocity` those before.
"""
