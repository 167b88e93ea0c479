"""Predicted and measured peak memory of forward and backward agree, for states of megabytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CELLS = 250_000
"""Number of cells; a state takes 2 MB."""
CASES: dict[str, dict[str, Any]] = {
    "all, final": {"steps": 80},
    "all, keeping all": {"steps": 25, "keep": "all"},
    "all, running": {"steps": 40, "running": True},
    "all, adjoint": {"steps": 30, "keep_adjoint": True},
    "segments, final": {"steps": 400, "memory": "170MB"},
    "segments, some kept": {"steps": 120, "memory": "190MB", "keep": [3, 17, 31, 40]},
    "binomial, final": {"steps": 700, "memory": "105MB"},
    "binomial, running": {"steps": 300, "memory": "105MB", "running": True},
    "binomial, keeping all": {"steps": 30, "memory": "160MB", "keep": "all"},
    "binomial, adjoint": {"steps": 50, "memory": "150MB", "keep_adjoint": True},
    "a batch of four": {"steps": 80, "batch": 4},
}

SCRIPT = """
import gc, importlib.util, json, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from benchmarks.machine import peak_mb, reset_peak, resident_mb
from simphys.autograd import tensor
from simphys.autograd.graph import backward
from simphys.rollout import rollout
spec = importlib.util.spec_from_file_location("decay", sys.argv[2])
decay = sys.modules["decay"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(decay)

def measure(cells, *, steps, keep="final", running=False, batch=None, **options):
    model, params, state = decay.system(cells if batch is None else cells // batch, batch=batch)
    of_running = (lambda states, steps: (states.amount * states.amount).sum()) if running else None
    gc.collect()
    before = resident_mb()
    reset_peak()
    trajectory = rollout(model, params, state, steps=steps, keep=keep, running=of_running, **options)
    if running:
        trajectory.running.backward()
    elif keep == "final":
        trajectory.final.amount.sum().backward()
    else:
        backward([trajectory.amount], [np.broadcast_to(1.0, trajectory.amount.shape)])
    plan = trajectory.plan
    return plan.kind, plan.predicted_bytes, (peak_mb() - before) * 2**20

cases = json.loads(sys.argv[3])
for case in cases.values():
    measure(1000, **{**case, "memory": "all"})  # warm up: load, compile and cache
print(json.dumps({name: measure(int(sys.argv[4]), **case) for name, case in cases.items()}))
"""


@pytest.fixture(scope="module")
def measured() -> dict[str, tuple[str, int, float]]:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SCRIPT, root, Path(__file__).parent / "decay.py", json.dumps(CASES), CELLS]
    returned = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}  # freed memory is returned to the system at once
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, env=returned)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are measured on Linux only")
@pytest.mark.parametrize("name", CASES)
def test_the_peak_is_the_predicted_one(name: str, measured: dict[str, tuple[str, int, float]]) -> None:
    kind, predicted, peak = measured[name]
    assert kind == name.partition(",")[0] or "batch" in name
    assert 9e7 < predicted < 3e8
    assert 0.9 < peak / predicted < 1.1, f"{peak:.0f} bytes measured, {predicted} predicted"
