"""Pendulums in generalized coordinates: chain/, links in the plane, and spherical/, one pendulum in space.

Start with chain/step.py or spherical/step.py, the nested steps; each engine.py runs the same physics in fused loops.
"""

from __future__ import annotations

from typing import Any

from . import chain, spherical
from .chain import Chain
from .spherical import Spherical

__all__ = ["Chain", "Spherical", "build", "chain", "spherical"]


def build(config: Any) -> tuple[Chain | Spherical, Any, Any]:
    """Build the model, the parameters and the initial state of a validated scene."""
    from simphys.autograd import tensor

    from . import scene

    model = scene.model(config)
    made = scene.fields(
        simulator=config.simulator,
        geometry=config.geometry,
        material=config.material,
        environment=config.environment,
        state=config.state,
    )
    params = model.Params(**{name: tensor(values) for name, values in made.params.items()})
    return model, params, model.State(**{name: tensor(values) for name, values in made.state.items()})
