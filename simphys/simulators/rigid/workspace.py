"""Workspace of the fused loops: regions of one flat array per batch member; see rows.py for their contents."""

from __future__ import annotations

import re
from functools import cached_property
from types import SimpleNamespace

import numpy as np

from simphys.nn.fused import Layout
from simphys.simulator import Array, Shape

from .model import RigidBodies
from .phases import PHASES
from .sweeps import record_length

PARAMS = (
    "mass", "inertia", "gravity", "friction", "restitution", "contact_stiffness", "contact_damping",
    "spring_stiffness", "spring_damping", "spring_length", "joint_damping", "motor_strength",
    "hidden_weight", "hidden_bias", "output_weight", "output_bias",
)  # fmt: skip
"""Order in which a member's parameters are packed."""

FORWARD = (
    "stage_x", "stage_q", "stage_v", "stage_w", "weights", "inputs", "hidden", "outputs",
    "gap", "frame", "gap_normal", "attitude", "time", "active", "first", "action", "wrench", "twist",
    "impact_x", "impact_q", "fraction",
    "row", "target", "unused_target", "limit", "bounce", "inverse_mass", "spin_change", "moment", "impulse",
    "new_twist", "shift", "held", "record", "speed", "trace", "phase_target", "delta_v", "result",
)  # fmt: skip
"""Regions of a step; the network and its rows are padded, see nn/fused.py.

stage_...: the state in which forces act; impact_...: poses at an impact; gap_normal: normals at which gaps of contacts
at rest are measured, see time_of_impact.py; unused_target: joint targets at an impact, which nothing reads.
"""

ADJOINT = (
    "adj_outputs",
    "adj_gap", "adj_frame", "adj_rotations", "adj_time", "adj_action", "adj_wrench", "adj_twist",
    "adj_row", "adj_target", "adj_unused_target", "adj_unused_row", "adj_limit", "adj_bounce", "adj_inverse_mass",
    "adj_spin_change", "adj_moment", "adj_impulse", "adj_fraction", "adj_impact_x", "adj_impact_theta",
    "adj_new_twist", "adj_shift", "adj_theta",
    "adj_x", "adj_q", "adj_v", "adj_w",
)  # fmt: skip
"""Regions that the adjoint of a step adds to, cleared before; adj_rotations: adjoint of `attitude`, by small ones."""

REVERSE = (
    "adj_stage_x", "adj_stage_q", "adj_stage_v", "adj_stage_w",
    "adj_inputs", "adj_hidden", "adj_record", "adj_speed", "adj_phase_target", "adj_delta_v",
    "adj_x_new", "adj_q_new", "adj_v_new", "adj_w_new",
)  # fmt: skip
"""Further workspace of the adjoint; adj_stage_...: adjoint of the state in which forces act."""

REGIONS = FORWARD + ADJOINT + REVERSE

AT = SimpleNamespace(**{name: number for number, name in enumerate((*PARAMS, *REGIONS))})
"""Number of each region; the `layout` of a `Workspace` gives its offset."""


class Workspace:
    """Offsets of all regions for a model."""

    def __init__(self, model: RigidBodies) -> None:
        self.model = model

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """Shapes of the regions."""
        model, state = self.model, self.model.state_shapes()
        n, spins, D, sweeps = model.bodies, model.spins, model.dim + model.spins, model.sweeps
        M, contacts, N, W = model.candidates.count, model.contacts, model.rows, model.dim + 2 * spins
        network = None if model.network is None else Layout(model.network)
        shapes: dict[str, Shape] = {
            "weights": (network.size if network else 0,),
            "inputs": (network.inputs if network else 0,),
            "hidden": (network.hidden if network else 0,),
            "outputs": (network.outputs if network else 0,),
            "gap": (M,),
            "frame": (M, 3 * model.dim),
            "attitude": (contacts, 2 * model.rotations),
            "rotations": (contacts, 2 * spins),
            "action": (len(model.motors),),
            "wrench": (n, D),
            "twist": (n, D),
            "inverse_mass": (n,),
            "spin_change": (N, 2 * spins),
            "row": (N, W),
            "target": (N,),
            "limit": (contacts,),
            "gap_normal": (contacts, model.dim),
            "bounce": (contacts,),
            "held": (contacts,),
            "time": (contacts,),
            "active": (contacts,),
            "first": (n,),
            "fraction": (n,),
            "moment": (N, 2 * spins),
            "impulse": (PHASES, N),
            "phase_target": (2, N),
            "delta_v": (n + 1, D),
            "result": (PHASES, n, D),
            "new_twist": (n, D),
            "shift": (n, D),
            "record": (N, record_length(model.dim)),
            "speed": (n + 1, D),
            "trace": (PHASES * sweeps, N),
            "theta": (n, spins),
            "x": state["position"],
            "q": state["orientation"],
            "v": state["velocity"],
            "w": state["angular_velocity"],
        }
        return {name: shapes[re.sub("^(adj_)?(stage_|impact_|unused_)?|_new$", "", name)] for name in REGIONS}

    @cached_property
    def layout(self) -> Array:
        """Offset of each region by number: parameters within the packed parameters, the others within the workspace.

        The last two entries are the begin and the end of ADJOINT.
        """
        given = self.model.param_shapes()
        param_offsets = np.cumsum([0, *(int(np.prod(given[name])) for name in PARAMS)])
        places = np.cumsum([0, *(int(np.prod(self.shapes[name])) for name in REGIONS)])
        ends = places[[len(FORWARD), len(FORWARD + ADJOINT)]]
        return np.array([*param_offsets[:-1], *places[:-1], *ends], np.int32)

    @cached_property
    def params(self) -> int:
        """Number of parameter values of a member."""
        return sum([int(np.prod(shape)) for shape in self.model.param_shapes().values()])

    @cached_property
    def size(self) -> int:
        """Size of a member's workspace."""
        return sum([int(np.prod(shape)) for shape in self.shapes.values()])
