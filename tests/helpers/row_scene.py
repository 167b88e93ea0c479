"""A scene of a field on a grid, and of several experiments at once: a row of pendulums, released in several ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import from_dict
from simphys.scenefile.section import Fields, Section, Simulator
from simphys.scenefile.simulators import SIMULATORS
from simphys.simulator.grids import Grid

from ..rollout.pendulums import Pendulums
from .pendulum_scene import Material, PendulumConfig
from .small_scenes import merged

TRUTH = [1.0, 2.0, 3.0]
RELEASES = [[0.3, -0.2, 0.5], [-0.1, 0.4, 0.2]]


class Named(Simulator):
    name: Literal["row"]


class Start(Section):
    """The angles, or those of each experiment."""

    angle: list[float] | list[list[float]]


class Row(Pendulums):
    """Pendulums that stand on a grid."""

    def describe_grid(self) -> Grid:
        return Grid(cells=(self.n,), spacing=0.1, offset=0.5, fields={"angle": "rad", "stiffness": "1/s^2"})


class RowConfig(PendulumConfig):
    simulator: Named  # type: ignore[assignment]
    material: Material
    start: Start  # type: ignore[assignment]

    def build_fields(self) -> Fields:
        made = super().build_fields()
        batched = frozenset(["angle", "rate"]) if made.state["angle"].ndim == 2 else frozenset()
        return Fields(params=made.params, state=made.state, batched=batched)

    def build_model(self) -> Pendulums:
        return Row(len(self.material.stiffness), self.time.dt)


def register(patch: pytest.MonkeyPatch) -> None:
    """Make scene files know the simulator."""
    patch.setitem(SIMULATORS, "row", f"{__name__}:RowConfig")


def row(folder: Path, **changes: Any) -> Scene:
    """Three pendulums, released in two ways, for 4 s."""
    tables: dict[str, Any] = {
        "title": "A row of pendulums",
        "simulator": {"name": "row"},
        "time": {"dt": 0.05, "steps": 80},
        "material": {"stiffness": [1.1, 2.2, 2.8], "damping": 0.1},
        "start": {"angle": RELEASES},
        "output": {"folder": str(folder / "run")},
    }
    return build_scene(from_dict(merged(tables, changes)))
