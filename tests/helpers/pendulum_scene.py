"""A scene of a simulator without bodies: pendulums, whose state are angles and rates, one number each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import from_dict
from simphys.scenefile.section import Fields, Positive, Section, Simulator
from simphys.scenefile.sections import Config
from simphys.scenefile.simulators import SIMULATORS

from ..rollout.pendulums import Pendulums
from .small_scenes import merged

TRUTH = {"stiffness": [1.0, 2.0, 3.0], "damping": 0.1}


class Named(Simulator):
    name: Literal["pendulums"]


class Material(Section):
    stiffness: list[Positive]
    damping: float = 0.0


class Start(Section):
    angle: list[float]


class PendulumConfig(Config):
    simulator: Named
    material: Material
    start: Start

    def build_fields(self) -> Fields:
        material, angle = self.material, np.array(self.start.angle)
        params = {"stiffness": np.array(material.stiffness), "damping": np.array(material.damping)}
        return Fields(params=params, state={"angle": angle, "rate": np.zeros_like(angle)})

    def build_model(self) -> Pendulums:
        return Pendulums(len(self.material.stiffness), self.time.dt)


def register(patch: pytest.MonkeyPatch) -> None:
    """Make scene files know the simulator."""
    patch.setitem(SIMULATORS, "pendulums", f"{__name__}:PendulumConfig")


def pendulums(folder: Path, **changes: Any) -> Scene:
    """Three pendulums for 10 s; the first angle and the last rate are measured, of the TRUTH, without noise.

    Unknown are all stiffnesses seen, and the damping.
    """
    tables: dict[str, Any] = {
        "title": "Pendulums",
        "simulator": {"name": "pendulums"},
        "time": {"dt": 0.05, "steps": 200},
        "material": {"stiffness": [1.1, 2.0, 2.8], "damping": 0.2},
        "start": {"angle": [0.3, -0.2, 0.5]},
        "unknowns": {
            "stiffness": {"parameter": "stiffness", "entries": [0, 2], "transform": "log"},
            "damping": {"parameter": "damping"},
        },
        "observations": {
            "file": str(folder / "seen.txt"),
            "channels": [
                {"column": 1, "field": "angle", "node": 0, "unit": "rad", "sigma": 0.01},
                {"column": 2, "field": "rate", "node": 2, "sigma": 0.01},
            ],
        },
        "output": {"folder": str(folder / "run")},
    }
    if not (folder / "seen.txt").exists():
        truth = build_scene(from_dict(merged(tables, {"material": TRUTH, "observations": None, "unknowns": None})))
        motion = truth.rollout()
        columns = [motion.steps * truth.dt, motion.angle.data[:, 0], motion.rate.data[:, 2]]
        np.savetxt(folder / "seen.txt", np.column_stack(columns))
    return build_scene(from_dict(merged(tables, changes)))
