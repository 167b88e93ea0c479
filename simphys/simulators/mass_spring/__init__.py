"""Mass-spring systems. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from __future__ import annotations

from typing import Any

from simphys.rollout import rollout

from .model import MassSpring, Params, State
from .step import step

__all__ = ["MassSpring", "Params", "State", "build", "rollout", "step"]


def build(config: Any) -> tuple[MassSpring, Params, State]:
    """Build the model, the parameters and the initial state of a validated scene.

    Errors: InputError if the time step exceeds the stability limit.
    """
    from simphys.autograd import tensor

    from .scene import build_arrays
    from .stability import check_dt

    arrays = build_arrays(config)
    check_dt(arrays)
    return (
        MassSpring(
            arrays.ends,
            arrays.pinned,
            arrays.dim,
            arrays.dt,
            arrays.integrator,
            anchors=len(arrays.pinned) - arrays.nodes,
            actuator=arrays.actuator,
            controller=arrays.controller,
        ),
        Params(**{name: tensor(values) for name, values in arrays.params.items()}),
        State(**{name: tensor(values) for name, values in arrays.state.items()}),
    )
