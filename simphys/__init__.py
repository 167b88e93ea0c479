"""Differentiable physics with hand-written, proven adjoints.

scene = simphys.load_scene("scene.toml")
loss = scene.loss(scene.rollout())
loss.backward()

docs/api.md describes the names listed here; all others are internal and may change.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from ._version import __version__

if TYPE_CHECKING:
    from . import autograd, optimize, plot, rollout
    from .app.sweep import sweep
    from .app.workflow import identify, simulate
    from .diagnose.check.scene import check_scene as check
    from .experiment.scene import Scene, load_scene
    from .record import Recording

__all__ = [
    "Recording",
    "Scene",
    "__version__",
    "autograd",
    "check",
    "identify",
    "load_scene",
    "optimize",
    "plot",
    "rollout",
    "simulate",
    "sweep",
]

_FOLDERS = {"autograd", "optimize", "plot", "rollout"}
_HOMES = {
    "Recording": (".record", "Recording"),
    "Scene": (".experiment.scene", "Scene"),
    "check": (".diagnose.check.scene", "check_scene"),
    "identify": (".app.workflow", "identify"),
    "load_scene": (".experiment.scene", "load_scene"),
    "simulate": (".app.workflow", "simulate"),
    "sweep": (".app.sweep", "sweep"),
}


def __getattr__(name: str) -> object:
    """Import at first use: scene files, observations and optimizers bring libraries that kernels do not need."""
    if name in _FOLDERS:
        return _import_module(f".{name}", __name__)
    if name in _HOMES:
        module, attribute = _HOMES[name]
        return getattr(_import_module(module, __name__), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
