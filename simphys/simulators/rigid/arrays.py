"""Shapes of the arrays of a step, and constants of a model, by name; rows.py has the meaning of the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Shape
from simphys.substep import Setting

from . import joint_tables
from .model import RigidBodies
from .sweeps import COUNTS, PHASES, record_length


def list_shapes(model: RigidBodies) -> Mapping[str, Shape]:
    """Return the shape of each array."""
    n, spins, M, N = model.bodies, model.spins, model.candidates.count, model.rows
    D, W, contacts, joint_rows = model.dim + spins, model.dim + 2 * spins, model.contacts, model.joint_rows
    state = model.state_shapes()
    return {
        **model.param_shapes(),
        **state,
        "new_position": state["position"],
        "new_orientation": state["orientation"],
        "new_velocity": state["velocity"],
        "new_spin": state["angular_velocity"],
        "action": (len(model.motors),),
        "sensed": (model.senses,),
        "wrench": (n, D),
        "twist": (n, D),
        "gap": (M,),
        "frame": (M, 3 * model.dim),
        "gap_normal": (contacts, model.dim),
        "attitude": (contacts, 2 * model.rotations),
        "time": (contacts,),
        "active": (contacts,),
        "first": (n,),
        "x_impact": state["position"],
        "q_impact": state["orientation"],
        "fraction": (n,),
        "joint_row": (joint_rows, W),
        "joint_target": (joint_rows,),
        "contact_row": (model.dim * contacts, W),
        "contact_target": (model.dim * contacts,),
        "row": (N, W),
        "target": (N,),
        "limit": (contacts,),
        "bounce": (contacts,),
        "inverse_mass": (n,),
        "spin_change": (N, 2 * spins),
        "moment": (N, 2 * spins),
        "new": (n, D),
        "shift": (n, D),
        "impulse": (PHASES, N),
        "order": (M + COUNTS,),
        "held": (contacts,),
        "record": (N, record_length(model.dim)),
        "speed": (n + 1, D),
        "trace": (PHASES * model.sweeps, N),
        "phase_target": (2, N),
        "delta_v": (n + 1, D),
        "result": (PHASES, n * D),
    }


def list_constants(model: RigidBodies) -> Mapping[str, Any]:
    """Return what routines read of a model."""
    found = model.candidates
    springs = model.springs
    tables = joint_tables.tabulate_constraints(model), joint_tables.tabulate_free_rows(model)
    constraints, free_rows = [{"links": each.links, "parts": each.parts, "count": each.rows} for each in tables]
    return {
        "bodies": model.bodies,
        "joint_rows": model.joint_rows,
        "contacts": model.contacts,
        "sweeps": model.sweeps,
        "dt": model.dt,
        "rest_speed": model.rest_speed,
        "slip_speed": model.slip_speed,
        "joint_gain": model.joint_correction / model.dt,
        "free": model.free,
        "row_bodies": model.row_bodies,
        "candidates": {
            "kind": found.kind,
            "body_a": found.body_a,
            "body_b": found.body_b,
            "constants": found.constants,
            "count": found.count,
        },
        "constraints": constraints,
        "free_rows": free_rows,
        "springs": {
            "bodies": np.array([(spring.a, spring.b) for spring in springs], np.int32),
            "anchors": np.array([(s.anchor_a, s.anchor_b) for s in springs], runtime.real_dtype()),
            "count": len(springs),
        },
    }


SETTING = Setting(list_shapes, list_constants)
