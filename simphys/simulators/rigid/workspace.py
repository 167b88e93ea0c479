"""Workspace of the fused loops: regions of one flat array per batch member; see rows.py for their contents."""

from __future__ import annotations

import re
from functools import cached_property
from types import SimpleNamespace
from typing import no_type_check

import numpy as np

from simphys.autograd import View, stands_for
from simphys.nn.fused import Layout
from simphys.simulator import Array, Shape

from .arrays import Change, Contacts, Impact, Member, Motion, Params, Rows, Signals, Solver
from .model import RigidBodies
from .phases import PHASES
from .sweeps import record_length

PARAMS = Params._fields
"""Order in which a member's parameters are packed."""

PARAM_NAMES = Params(*PARAMS)

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


MEMBER = Member(
    stage=Motion("stage_x", "stage_q", "stage_v", "stage_w"),
    change=Change("wrench", "twist", "new_twist", "shift"),
    contacts=Contacts(*Contacts._fields),
    rows=Rows(*Rows._fields),
    impact=Impact("impact_x", "impact_q", "fraction"),
    solver=Solver(*Solver._fields)._replace(order=None),
    signals=Signals(*Signals._fields),
)
"""The regions of a step by record and field."""

ADJ_MEMBER = Member(
    stage=Motion("adj_x", "adj_q", "adj_v", "adj_w", "adj_theta"),
    change=Change("adj_wrench", "adj_twist", "adj_new_twist", "adj_shift"),
    contacts=Contacts("adj_gap", "adj_frame", "adj_rotations", "adj_time"),
    rows=Rows(*[f"adj_{name}" for name in Rows._fields]),
    impact=Impact(x="adj_impact_x", theta="adj_impact_theta", fraction="adj_fraction"),
    solver=Solver(
        impulse="adj_impulse",
        record="adj_record",
        speed="adj_speed",
        phase_target="adj_phase_target",
        delta_v="adj_delta_v",
    ),
    signals=Signals("adj_action", None, "adj_inputs", "adj_hidden", "adj_outputs"),
)
"""The regions of its adjoint."""

ADJ_STAGE = Motion("adj_stage_x", "adj_stage_q", "adj_stage_v", "adj_stage_w")
ADJ_NEW = Motion("adj_x_new", "adj_q_new", "adj_v_new", "adj_w_new")
UNUSED_TARGET = Rows(row="row", target="unused_target")
ADJ_UNUSED_ROW = Rows(row="adj_unused_row", target="adj_target")
ADJ_UNUSED_TARGET = Rows(row="adj_row", target="adj_unused_target")


@stands_for("array")
@no_type_check
def views(names, array, start, layout):
    """Make the record of views of an array at the regions with these names, in a kernel."""
    if isinstance(names, str):
        return View(array, start + View(layout)[getattr(AT, names)])
    found = [None if name is None else views(name, array, start, layout) for name in names]
    return tuple(found) if type(names) is tuple else type(names)(*found)


@stands_for("work")
@no_type_check
def select_impact(work, impulses):
    """Return the poses at an impact, or those where forces act if contacts give no impulses, in a kernel."""
    stage = work.stage
    return work.impact if impulses else work.impact._replace(x=stage.x, q=stage.q, theta=stage.theta)


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
