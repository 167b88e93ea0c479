"""Workload w5, charges, at a small size and at full size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.workloads import charges
from benchmarks.workloads.workload import REFERENCE, compare
from simphys.autograd import runtime

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["size.n=12", "time.steps=5"]


def run(*arguments: str) -> dict[str, Any]:
    """Run the command, and return its RESULT."""
    command = [sys.executable, "-m", "benchmarks.workloads", "w5", "--reps", "1", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    result: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
    return result


def test_fused_and_nested_agree() -> None:
    settings = charges.WORKLOAD.override(SMALL)
    (fused_loss, fused), (nested_loss, nested) = (
        charges.build(settings, mode).gradient() for mode in ("fused", "nested")
    )
    tolerance = 1e-5 if runtime.settings().precision == "f32" else 1e-12
    assert fused_loss == pytest.approx(nested_loss, rel=tolerance)
    assert set(fused) == {"x0", "v0", "q"}
    for name in fused:
        assert np.linalg.norm(fused[name] - nested[name]) <= tolerance * np.linalg.norm(nested[name])


def test_the_loss_is_the_same_without_recording() -> None:
    case = charges.build(charges.WORKLOAD.override(SMALL), "fused")
    tolerance = 1e-5 if runtime.settings().precision == "f32" else 1e-12
    assert case.forward() == pytest.approx(case.gradient()[0], rel=tolerance)


def test_elements_are_the_ordered_pairs() -> None:
    assert charges.elements({"size.n": 4}) == 12


def test_the_reference_deviates_from_itself_by_nothing() -> None:
    reference: Any = json.loads(REFERENCE.read_text())["w5"]
    errors = compare("w5", reference["loss"], reference["grads"])
    nothing = {"norm_rel": 0.0, "entry_err_over_rms": 0.0}
    assert errors == {"loss_rel": 0.0, "x0": nothing, "v0": nothing, "q": nothing}


@pytest.mark.parametrize(("precision", "of_loss", "of_gradient"), [("f32", 5e-6, 1e-4), ("f64", 1e-11, 1e-11)])
def test_loss_and_gradient_are_those_of_the_reference(precision: str, of_loss: float, of_gradient: float) -> None:
    errors = run("--dtype", precision)["err"]
    assert errors.pop("loss_rel") < of_loss
    assert set(errors) == {"x0", "v0", "q"}
    for error in errors.values():
        assert error["norm_rel"] < of_gradient and error["entry_err_over_rms"] < of_gradient
