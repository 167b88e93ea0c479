"""Roll: balls fly from impact to impact, which act on one or two of them, in the order of time."""

from __future__ import annotations

import numpy as np

from simphys.autograd import runtime, tensor
from simphys.substep import Event, Move, Parameters, sequence, trace_of

from .bounce import bounce
from .flight import flight
from .impact import impact
from .model import Billiards, Params, State
from .search import min_step, rounding
from .time_of_impact import time_of_bounce, time_of_impact

SEARCH = {"min_step": "shortest interval", "rounding": "tolerance"}

Roll = sequence(
    over="balls",
    state=("position", "velocity"),
    move=Move(
        flight,
        Parameters(own={"x": "position", "v": "velocity"}, shared={"a": "deceleration"}),
        time="t",
        replaces=("x", "v"),
    ),
    events=[
        Event(
            impact,
            Parameters(
                both={
                    ("x_i", "x_j"): "position",
                    ("v_i", "v_j"): "velocity",
                    ("r_i", "r_j"): "radius",
                    ("m_i", "m_j"): "mass",
                },
                shared={"a": "deceleration", "c": "restitution"},
                constant=SEARCH,
            ),
            when=time_of_impact,
            replaces=("v_i", "v_j"),
        ),
        Event(
            bounce,
            Parameters(
                own={"x": "position", "v": "velocity", "r": "radius"},
                shared={"a": "deceleration", "c": "cushion restitution", "lower": "lower", "upper": "upper"},
                constant=SEARCH,
            ),
            when=time_of_bounce,
            replaces=("v",),
            side="side",
        ),
    ],
    duration="time step",
    limit="max_impacts",
    sides="sides",
)
"""Position and velocity [n, 2] after a time step; see `arguments` for what it is applied to."""

Impacts = trace_of(Roll)
"""The impacts of a time step, and position and velocity before each."""


def arguments(model: Billiards, params: Params, state: State, time: float) -> tuple[object, ...]:
    """Collect what `Roll` and `Impacts` are applied to."""
    p = params
    corners = p.lower, p.upper
    if not model.cushions:
        corners = (tensor(np.zeros(2, runtime.real_dtype())),) * 2
    search = min_step(model), rounding()
    return (
        *(model, state.position, state.velocity, p.deceleration),
        *(p.radius, *search, p.mass, p.restitution, *corners, p.cushion_restitution, time),
    )
