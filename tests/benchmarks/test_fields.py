"""Workloads w3 (a wave) and w4 (smoke), small and at full size, and the comparison with deepwave at a small size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.workloads import smoke, wave
from simphys.autograd import runtime

ROOT = Path(__file__).resolve().parents[2]
CASES = pytest.mark.parametrize("module", [wave, smoke], ids=["wave", "smoke"])


def run(*arguments: str) -> str:
    """Run the command, and return its output."""
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@CASES
def test_fused_and_nested_agree(module: Any) -> None:
    settings = module.WORKLOAD.override(["size.n=12", "time.steps=5"])
    (loss, fused), (nested_loss, nested) = (module.build(settings, mode).gradient() for mode in ("fused", "nested"))
    tolerance = 1e-5 if runtime.settings().precision == "f32" else 1e-12
    assert loss == pytest.approx(nested_loss, rel=tolerance)
    assert module.build(settings, "fused").forward() == pytest.approx(loss, rel=tolerance)
    for name in fused:
        assert np.linalg.norm(fused[name] - nested[name]) <= tolerance * np.linalg.norm(nested[name])


@pytest.mark.parametrize(("precision", "of_loss", "of_gradient"), [("f32", 5e-5, 1e-4), ("f64", 1e-9, 1e-9)])
@pytest.mark.parametrize("name", ["w3", "w4"])
def test_loss_and_gradient_are_those_of_the_reference(
    name: str, precision: str, of_loss: float, of_gradient: float
) -> None:
    """Check the whole workloads; single precision rounds a sum over 65,536 cells and 256 steps of w3 to 3e-5."""
    (line,) = run("benchmarks.workloads", name, "--reps", "1", "--dtype", precision).splitlines()
    found = json.loads(line.removeprefix("RESULT "))
    errors = found["err"]
    assert errors.pop("loss_rel") <= of_loss
    assert all(each["norm_rel"] <= of_gradient for each in errors.values()), errors


def test_the_inversion_lowers_its_misfit() -> None:
    small = ["--shots", "2", "--receivers", "10", "--steps", "120", "--iterations", "2", "--repetitions", "1"]
    row = next(line for line in run("benchmarks.fits.inversion", *small).splitlines() if line.startswith("| simphys"))
    first, last = (float(cell) for cell in row.split("|")[3:5])
    assert 0 < last < first
