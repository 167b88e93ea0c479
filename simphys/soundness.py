"""Motions that blow up: told with the step where they do, and with the time step that would have been stable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .autograd.errors import InputError
from .mass_spring import Params, State, Trajectory
from .mass_spring.scene import MassSpringArrays
from .mass_spring.stability import check_dt, largest_stable_dt

if TYPE_CHECKING:
    from .scene import Scene

HUGE = np.float64(1e100)
"""Beyond it a motion has blown up, though its numbers are finite still: squares overflow. f64, to compare f32 with."""


def require_sound(scene: Scene, trajectory: Trajectory, *, who: str, remedy: str) -> None:
    """Raise InputError where the motion leaves the finite numbers; `remedy` follows the advice about the time step."""
    states = (trajectory.position.data, trajectory.velocity.data)
    if all((np.abs(state[-1]) < HUGE).all() for state in states):  # what has blown up stays so
        return
    sound = np.logical_and.reduce([(np.abs(state) < HUGE).all(axis=-1) for state in states])  # False for NaN too
    step, node = (int(found[0]) for found in np.nonzero(~sound))
    # Large motion may be stiffer than that at the start, for which the scene's dt was found stable.
    stable = largest_stable_dt(
        ends=scene.topology.ends,
        pinned=scene.topology.pinned,
        position=np.asarray(states[0][max(step - 1, 0)], np.float64),
        params=_arrays(scene.params),
        integrator=scene.topology.integrator,
    )
    limit = f"below {stable:.3g} s, which is stable where it had got to" if stable < scene.dt else "to less"
    raise InputError(
        who,
        "the motion must stay finite",
        f"a blow-up at step {step} (t = {step * scene.dt:g} s), at node {node} first, with dt = {scene.dt:g} s",
        f"Lower time.dt {limit}, or begin with less motion. {remedy}".strip(),
    )


def require_stable(scene: Scene) -> None:
    """Raise InputError, which tells the largest stable one, where dt is beyond it with the scene's present values."""
    topology = scene.topology
    check_dt(
        MassSpringArrays(
            ends=topology.ends,
            pinned=topology.pinned,
            dim=topology.dim,
            dt=topology.dt,
            integrator=topology.integrator,
            has_ground=bool(scene.params.ground_stiffness.data > 0),
            params=_arrays(scene.params),
            state=_arrays(scene.state),
            nodes=topology.nodes - topology.anchors,
            springs=topology.springs - topology.anchors,
        )
    )


def _arrays(part: Params | State) -> dict[str, np.ndarray]:
    return {name: np.asarray(value.data, np.float64) for name, value in vars(part).items()}
