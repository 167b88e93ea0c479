"""Views of scenes, runs and trajectories: found by name when they are asked for, as they stand above what they show."""

from __future__ import annotations

from importlib import import_module
from typing import Any

HOME = "simphys.app.views"


def views() -> Any:
    """Return the module of views; matplotlib takes a second, which only those wait for who look."""
    return import_module(HOME)
