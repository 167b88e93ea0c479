"""Mass-spring systems. Start with step.py, the nested step; engine.py runs the same physics in fused loops."""

from __future__ import annotations

from typing import Any

from simphys.rollout import rollout

from .model import Params, State, Topology
from .step import step

__all__ = ["Params", "State", "Topology", "build", "rollout", "step"]


def build(config: Any) -> tuple[Topology, Params, State]:
    """Build the model, the parameters and the initial state of a validated scene.

    Errors: InputError if the time step exceeds the stability limit.
    """
    from simphys.autograd import tensor

    from .scene import build_arrays
    from .stability import check_dt

    arrays = build_arrays(config)
    check_dt(arrays)
    return (
        Topology(
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
