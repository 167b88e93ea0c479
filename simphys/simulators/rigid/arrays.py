"""Shapes of the arrays of a step, and constants of a model, by name; rows.py has the meaning of the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Shape
from simphys.substep import Setting, Static

from .contacts.relative_motion import CLOSE
from .model import RigidBodies
from .solver.records import COUNTS, NUMBERS
from .solver.sweeps import EDGE, PHASES


def list_shapes(model: RigidBodies) -> Mapping[str, Shape]:
    """Return the shape of each array."""
    n, M, N = model.bodies, model.candidates.count, model.rows
    D, W, contacts = model.freedoms, model.row_width, model.contacts
    state = model.state_shapes()
    return {
        **model.param_shapes(),
        **state,
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
        "row": (N, W),
        "target": (N,),
        "limit": (contacts,),
        "bounce": (contacts,),
        "jacobian": (N, 2 * D),
        "response": (N, 2 * D),
        "new": (n, D),
        "shift": (n, D),
        "impulse": (PHASES, N),
        "order": (M + COUNTS,),
        "held": (contacts,),
        "record": (N, NUMBERS),
        "speed": (n + 1, D),
        "trace": (PHASES * model.sweeps, N),
        "phase_target": (2, N),
        "delta_v": (n + 1, D),
        "result": (PHASES, n * D),
    }


def list_constants(model: RigidBodies) -> Mapping[str, Any]:
    """Return what routines read of a model."""
    found, is_single = model.candidates, np.dtype(runtime.real_dtype()).itemsize == 4
    return {
        "dim": Static(model.dim),
        "freedoms": Static(model.freedoms),
        "is_single": Static(is_single),
        "free_anchors": Static(model.free_anchors),
        "close": Static(CLOSE[is_single]),
        "beyond": Static(1 + EDGE[is_single]),
        "bodies": model.bodies,
        "joint_rows": model.joint_rows,
        "contacts": model.contacts,
        "sweeps": model.sweeps,
        "dt": model.dt,
        "rest_speed": model.rest_speed,
        "free": model.free,
        "row_bodies": model.row_bodies,
        "candidates": {
            "kind": found.kind,
            "body_a": found.body_a,
            "body_b": found.body_b,
            "constants": found.constants,
            "count": found.count,
            "kinds": Static(tuple(sorted(found.kinds))),
        },
    }


SETTING = Setting(list_shapes, list_constants)
