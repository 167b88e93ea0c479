"""Workload w1c, a lattice of 128 x 128 nodes, reproduces the loss and gradients that other programs agree on."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
PEERS = Path(os.environ.get("SIMPHYS_PEERS", ROOT.parent / "shared" / "peers")) / "reference.json"
OWN = ROOT / "benchmarks" / "workloads" / "reference.json"
"""The project's own copy, for use without the peers."""

EVALUATE = """
import json, sys
from simphys.autograd import runtime
precision, kernels = sys.argv[1:]
runtime.init(precision=precision, threads=2)
runtime.PARALLEL_WORK_US = {"serial": float("inf"), "gather": 0.0}[kernels]
from benchmarks.workloads.lattice import WORKLOAD
from benchmarks.workloads.workload import summarize
loss, gradients = WORKLOAD.build(WORKLOAD.settings, "fused").gradient()
print(json.dumps({"loss": loss, "grads": summarize(gradients)}))
"""


@functools.cache
def evaluate(precision: str, kernels: str) -> Any:
    """Compute loss and summarized gradients in a new process, since precision and threads are fixed per process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-c", EVALUATE, precision, kernels]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("reference", [OWN, PEERS] if PEERS.exists() else [OWN], ids=lambda path: path.parent.name)
@pytest.mark.parametrize("kernels", ["serial", "gather"])
@pytest.mark.parametrize(
    ("precision", "loss_tolerance", "gradient_tolerance"), [("f64", 1e-9, 1e-9), ("f32", 5e-5, 1e-4)]
)
def test_the_reference_is_reproduced(
    precision: str, kernels: str, reference: Path, loss_tolerance: float, gradient_tolerance: float
) -> None:
    expected, found = json.loads(reference.read_text())["w1c"], evaluate(precision, kernels)
    assert found["loss"] == pytest.approx(expected["loss"], rel=loss_tolerance)
    assert set(found["grads"]) == set(expected["grads"])
    for name, theirs in expected["grads"].items():
        mine, norm = found["grads"][name], theirs["norm"]
        assert mine["norm"] == pytest.approx(norm, rel=gradient_tolerance)
        assert mine["dot_hash"] == pytest.approx(theirs["dot_hash"], rel=gradient_tolerance)
        assert mine["indices"] == theirs["indices"]
        typical = norm / np.sqrt(theirs["size"])  # root mean square of an entry
        assert mine["entries"] == pytest.approx(theirs["entries"], rel=0, abs=gradient_tolerance * typical)
