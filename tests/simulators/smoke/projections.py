"""Projections of arrays, with reports of their solves as those of an engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels import device
from simphys.simulator import Array
from simphys.simulators.smoke import project
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.solve_report import Direction, SolveReport
from simphys.substep import Entries, Target
from simphys.substep.action import Moment

RUNS: dict[Direction, Any] = {
    "forward": project.project,
    "backward": project.adj_project,
    "tangent": project.jvp_project,
}


class Solves:
    """Projections of one model that are reported together."""

    def __init__(self, model: Smoke) -> None:
        self._model = model
        self._moment = Moment(0, 0, {})

    def run(self, velocity: Array, direction: Direction = "forward") -> Array:
        """Project a velocity, its adjoint or its tangent, as in the next step."""
        given = Entries(device.to_device(np.ascontiguousarray(velocity, runtime.real_dtype()).reshape(-1)))
        found = Entries(device.to_device(np.zeros(velocity.size, runtime.real_dtype())))
        name = "velocity" if direction == "backward" else "projected_velocity"
        RUNS[direction](self._model, given, {name: Target(found)}, self._moment)()
        self._moment.step += 1
        return device.to_host(found.numbers, (velocity.size,)).reshape(velocity.shape)

    def report(self, direction: Direction = "forward") -> SolveReport:
        """Return the report of a direction."""
        reports = project.reports_of(self._model, self._moment.notes)._reports
        return reports.get((direction, 0), SolveReport(direction))


def projected(model: Smoke, velocity: Array, direction: Direction = "forward") -> Array:
    return Solves(model).run(velocity, direction)
