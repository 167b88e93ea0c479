"""The memory that a rollout of shallow water takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.rollout.engine import GeneratedEngine, engine_of
from simphys.simulators.wave.shallow import Params, step

from .basins import basin

STEPS = 8


def test_the_predicted_memory_is_what_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    model, params, state = basin((40, 30), batch=2)
    options: dict[str, Any] = {"batch": 2, "needs": frozenset(Params.names()), "deterministic": True}
    last = {name: values[:, None].copy() for name, values in state.arrays().items()}
    given = [*params.arrays().values(), *last.values()]
    seen: dict[int, np.ndarray[Any, Any]] = {}

    def record_arrays(self: GeneratedEngine, loops: Any, bound: Any) -> Any:
        seen.update({id(a): a for a in {**self._inputs, **bound}.values() if isinstance(a, np.ndarray)})
        return SimpleNamespace(run=lambda *_, **__: None)  # no kernel has to be compiled

    monkeypatch.setattr(GeneratedEngine, "_bind", record_arrays)
    engine = engine_of(step)(model, params.arrays(), None, **options)
    segment = engine.segment(STEPS)
    engine.load(segment, state.arrays())
    engine.advance(segment, first=0, start=0, steps=STEPS)
    engine.pull(segment, first=0, steps=STEPS, adjoint=last)
    made = [array for array in seen.values() if not any([np.may_share_memory(array, other) for other in given])]
    assert sum([array.nbytes for array in made]) == engine.segment_bytes(STEPS, dense=False)
