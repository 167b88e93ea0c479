"""The arrays that forward and backward hold at once are as large as the plan predicts."""

from __future__ import annotations

import gc
import sys
from types import FunctionType, GeneratorType
from typing import Any

import numpy as np
import pytest

from simphys.autograd.graph import backward
from simphys.rollout import Plan, inputs, rollout

from . import decay

CELLS = 1000
"""Number of cells; a state takes 8 kB."""
CASES: dict[str, dict[str, Any]] = {
    "all, final": {"steps": 80},
    "all, keeping all": {"steps": 25, "keep": "all"},
    "all, running": {"steps": 40, "running": True},
    "all, adjoint": {"steps": 30, "keep_adjoint": True},
    "segments, final": {"steps": 400, "memory": "680kB"},
    "segments, some kept": {"steps": 120, "memory": "760kB", "keep": [3, 17, 31, 40]},
    "binomial, final": {"steps": 700, "memory": "420kB"},
    "binomial, running": {"steps": 300, "memory": "420kB", "running": True},
    "binomial, keeping all": {"steps": 30, "memory": "640kB", "keep": "all"},
    "binomial, adjoint": {"steps": 50, "memory": "600kB", "keep_adjoint": True},
    "a batch of four": {"steps": 80, "batch": 4},
}


def count_held() -> int:
    """Add up the memory of all arrays that the calls in progress hold, each once, in bytes."""
    todo: list[Any] = []
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code is not measure.__code__:
        todo.append(frame.f_locals)
        frame = frame.f_back
    seen, sizes = set(), {}
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            while isinstance(each.base, np.ndarray):
                each = each.base
            sizes[id(each)] = each.nbytes
        elif isinstance(each, dict):
            todo.extend(each.values())
        elif isinstance(each, list | tuple | set):
            todo.extend(each)
        elif isinstance(each, GeneratorType):
            todo.append(each.gi_frame and each.gi_frame.f_locals)
        elif isinstance(each, FunctionType):
            todo.extend([cell.cell_contents for cell in each.__closure__ or ()])
        elif type(each).__module__.startswith(("simphys", decay.__name__)):
            todo.extend(gc.get_referents(each))
    return sum(sizes.values())


def measure(
    counts: list[int],
    *,
    steps: int,
    keep: Any = "final",
    running: bool = False,
    batch: int | None = None,
    **options: Any,
) -> Plan:
    """Run a rollout and its backward; the engine adds to `counts` what is held whenever it is called."""
    model, params, state = decay.system(CELLS if batch is None else CELLS // batch, batch=batch)
    of_running = (lambda states, steps: (states.amount * states.amount).sum()) if running else None
    trajectory = rollout(model, params, state, steps=steps, keep=keep, running=of_running, **options)
    if running:
        assert trajectory.running is not None
        trajectory.running.backward()
    elif keep == "final":
        trajectory.final.amount.sum().backward()
    else:
        backward([trajectory.amount], [np.broadcast_to(1.0, trajectory.amount.shape)])
    assert trajectory.plan is not None
    return trajectory.plan


@pytest.mark.parametrize("name", CASES)
def test_what_is_held_is_what_was_predicted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PIECE", 8 * CELLS)  # running sums take one state at a time, as of large states
    counts: list[int] = []

    def counted(original: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            result = original(*arguments, **options)
            counts.append(count_held())
            return result

        return call

    for method in ("read", "pull"):
        monkeypatch.setattr(decay.DecayEngine, method, counted(getattr(decay.DecayEngine, method)))
    plan = measure(counts, **CASES[name])
    assert plan.kind == name.partition(",")[0] or "batch" in name
    assert 0.9 * plan.predicted_bytes < max(counts) <= plan.predicted_bytes
