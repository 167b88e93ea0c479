"""Differentiable physics with hand-written, proven adjoints.

scene = simphys.load_scene("scene.toml")
loss = scene.loss(scene.rollout())
loss.backward()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simphys.app.workflow import identify, simulate
    from simphys.experiment.scene import Scene, load_scene

__version__ = "0.1.0"
__all__ = ["Scene", "identify", "load_scene", "simulate"]

_HOMES = {"Scene": ".scene", "load_scene": ".scene", "identify": ".workflow", "simulate": ".workflow"}


def __getattr__(name: str) -> Any:
    """Import at first use: scene files, observations and optimizers bring libraries that kernels do not need."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
