"""Where fused loops keep what a step passes on: regions of one flat array a member, see rows.py for what they hold."""

from __future__ import annotations

import re
from functools import cached_property
from types import SimpleNamespace

import numpy as np

from simphys.nn.fused import Layout
from simphys.simulator import Array, Shape

from .acts import ACTS
from .model import RigidBodies
from .sweeps import record_length

PARAMS = (
    "mass", "inertia", "gravity", "friction", "restitution", "contact_stiffness", "contact_damping",
    "spring_stiffness", "spring_damping", "spring_length", "joint_damping", "motor_strength",
    "hidden_weight", "hidden_bias", "output_weight", "output_bias",
)  # fmt: skip
"""In the order in which a member's parameters lie."""

FORWARD = (
    "acting_x", "acting_q", "acting_v", "acting_w", "weights", "inputs", "hidden", "outputs",
    "gap", "frame", "unmoved", "facing", "time", "active", "first", "action", "wrench", "twist",
    "then_x", "then_q", "part",
    "row", "target", "unread_target", "limit", "bounce", "inverse_mass", "turned", "moment", "impulse", "new_twist",
    "shift", "held", "record", "speed", "trace", "goal", "gained", "result",
)  # fmt: skip
"""Of a step; a network and its rows are padded, see nn/fused.py.

acting_...: the state in the middle of a step; then_...: poses at an impact; unmoved: normals where gaps of what rests
are taken, see meeting.py; unread_target: where joints leave targets of the poses at an impact, which nothing reads.
"""

ADJOINT = (
    "adj_outputs",
    "adj_gap", "adj_frame", "adj_turns", "adj_time", "adj_action", "adj_wrench", "adj_twist",
    "adj_row", "adj_target", "adj_unread_target", "adj_unread_row", "adj_limit", "adj_bounce", "adj_inverse_mass",
    "adj_turned", "adj_moment", "adj_impulse", "adj_part", "adj_then_x", "adj_then_theta",
    "adj_new_twist", "adj_shift", "adj_theta",
    "adj_x", "adj_q", "adj_v", "adj_w",
)  # fmt: skip
"""What is added to in a step's adjoint, and begins at 0; adj_turns is the adjoint of `facing` by small turns."""

REVERSE = (
    "of_x", "of_q", "of_v", "of_w",
    "adj_inputs", "adj_hidden", "adj_record", "adj_speed", "adj_goal", "adj_gained",
    "adj_x_new", "adj_q_new", "adj_v_new", "adj_w_new",
)  # fmt: skip
"""What else an adjoint works with; of_...: the adjoint of the state in the middle of a step."""

REGIONS = FORWARD + ADJOINT + REVERSE

AT = SimpleNamespace(**{name: number for number, name in enumerate((*PARAMS, *REGIONS))})
"""The number of each region; `layout` of a `Memory` has its place."""


class Memory:
    """The places of all regions for a model."""

    def __init__(self, model: RigidBodies) -> None:
        self.model = model

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """Of the regions."""
        model, state = self.model, self.model.state_shapes()
        n, spins, D, sweeps = model.bodies, model.spins, model.dim + model.spins, model.sweeps
        M, of_rows, N, W = model.candidates.count, model.contacts, model.rows, model.dim + 2 * spins
        network = None if model.network is None else Layout(model.network)
        shapes: dict[str, Shape] = {
            "weights": (network.size if network else 0,),
            "inputs": (network.inputs if network else 0,),
            "hidden": (network.hidden if network else 0,),
            "outputs": (network.outputs if network else 0,),
            "gap": (M,),
            "frame": (M, 3 * model.dim),
            "facing": (of_rows, 2 * model.rotations),
            "turns": (of_rows, 2 * spins),
            "action": (len(model.motors),),
            "wrench": (n, D),
            "twist": (n, D),
            "inverse_mass": (n,),
            "turned": (N, 2 * spins),
            "row": (N, W),
            "target": (N,),
            "limit": (of_rows,),
            "unmoved": (of_rows, model.dim),
            "bounce": (of_rows,),
            "held": (of_rows,),
            "time": (of_rows,),
            "active": (of_rows,),
            "first": (n,),
            "part": (n,),
            "moment": (N, 2 * spins),
            "impulse": (ACTS, N),
            "goal": (2, N),
            "gained": (n + 1, D),
            "result": (ACTS, n, D),
            "new_twist": (n, D),
            "shift": (n, D),
            "record": (N, record_length(model.dim)),
            "speed": (n + 1, D),
            "trace": (ACTS * sweeps, N),
            "theta": (n, spins),
            "x": state["position"],
            "q": state["orientation"],
            "v": state["velocity"],
            "w": state["angular_velocity"],
        }
        return {name: shapes[re.sub("^(adj_)?(acting_|of_|then_|unread_)?|_new$", "", name)] for name in REGIONS}

    @cached_property
    def layout(self) -> Array:
        """The place of each region, of the parameters in theirs, the others in the memory of a step, by number.

        Behind them: where ADJOINT begins and ends.
        """
        given = self.model.param_shapes()
        of_params = np.cumsum([0, *(int(np.prod(given[name])) for name in PARAMS)])
        places = np.cumsum([0, *(int(np.prod(self.shapes[name])) for name in REGIONS)])
        ends = places[[len(FORWARD), len(FORWARD + ADJOINT)]]
        return np.array([*of_params[:-1], *places[:-1], *ends], np.int32)

    @cached_property
    def params(self) -> int:
        """Numbers of a member's parameters."""
        return sum([int(np.prod(shape)) for shape in self.model.param_shapes().values()])

    @cached_property
    def size(self) -> int:
        """Numbers of a member's memory of a step."""
        return sum([int(np.prod(shape)) for shape in self.shapes.values()])
