"""The memory that a rollout of shallow water takes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from simphys.rollout.generated import engine_of
from simphys.simulator import Engine
from simphys.simulators.wave.shallow import Params, step

from .basins import basin

STEPS = 8


def test_the_predicted_memory_is_what_it_takes() -> None:
    model, params, state = basin((40, 30), batch=2)
    options: dict[str, Any] = {"batch": 2, "needs": frozenset(Params.names()), "deterministic": True}
    last = {name: values[:, None].copy() for name, values in state.arrays().items()}

    def run() -> Engine:
        engine = engine_of(step)(model, params.arrays(), None, **options)
        segment = engine.segment(STEPS)
        engine.load(segment, state.arrays())
        engine.advance(segment, first=0, start=0, steps=STEPS)
        engine.pull(segment, first=0, steps=STEPS, adjoint=last)
        return engine

    run()  # memory for compiling kernels does not count
    tracemalloc.start()
    predicted = run().segment_bytes(STEPS, dense=False)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak == pytest.approx(predicted, rel=0.05)
