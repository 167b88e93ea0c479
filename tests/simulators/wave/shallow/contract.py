"""The small basins that keep the contract of a simulator."""

from __future__ import annotations

import functools
from typing import Any

from ....helpers.contract import Case, Contract, System
from .basins import BASIN, CHANNEL, NAMES, basin

STEPS = 8


def build(*grid: Any, **options: Any) -> System:
    return System(*basin(*grid, **options))


GRIDS = {"basin": functools.partial(build, *BASIN), "channel": functools.partial(build, *CHANNEL)}
LOSSES = ("all", "states", "final")
BATCHED = {"depth": ("depth", "velocity"), "friction": ("friction", "elevation", "gravity")}

CONTRACT = Contract(
    modes=tuple([Case(name, grid, STEPS, losses=LOSSES) for name, grid in GRIDS.items()]),
    batches=tuple(
        [
            Case(f"basin, {name}", functools.partial(build, batch=3, batched=batched), STEPS, members=1e-12)
            for name, batched in BATCHED.items()
        ]
    ),
    devices=(Case("basin", functools.partial(build, batch=3, batched=NAMES), STEPS, f32=1e-4),),
    budgets=(Case("basin", build, STEPS, keep=([STEPS], [0, 3, 8], "final"), budget=24 / 25),),
    derivatives=(
        Case("basin", GRIDS["basin"], 4),
        Case("channel", GRIDS["channel"], 4, gradcheck={"mode": "full", "tolerance": 1e-6}),
    ),
    certificates=(Case("basin", build, STEPS, alone=("elevation", "depth")),),
    quick=(),  # each takes seconds to compile
)
