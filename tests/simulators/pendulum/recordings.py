"""The shipped scenes, and the script that made their recordings, with the true values."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import numpy as np

import simphys
from simphys.experiment.scene import Scene

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "scenes" / "pendulum"
DATA = Path(os.environ.get("SIMPHYS_DATA", ROOT.parent / "shared" / "data")) / "air_track_and_pendulum"


def load(name: str, *overrides: str) -> Scene:
    """Load a shipped scene in f64."""
    return simphys.load_scene(FOLDER / f"{name}.toml", ['runtime.precision="f64"', *overrides])


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_recordings_of_pendulums", FOLDER / "make_recordings.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def rmse(scene: Scene, loss: float, sigma: float) -> float:
    """Root mean square error [rad] of a fit with this final loss."""
    assert scene.observations is not None
    return float(sigma * np.sqrt(2 * loss / scene.observations.values.size))
