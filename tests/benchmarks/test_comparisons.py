"""Programs that print tables, at a small size."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import compare, machine
from benchmarks.fits import air_track as bench_air_track
from simphys.autograd import runtime


def row(gradient_ms: float) -> compare.Row:
    times = {name: gradient_ms for name in ("fwd_ms", "fwd_min_ms", "grad_ms", "grad_min_ms")}
    return {
        **times,
        "err": {"loss_rel": 1e-6, "k": {"norm_rel": 3e-6}},
        "rss_mb": 80,
        "rss_import_mb": 30,
        "cold_s": 0.5,
    }


def test_ratios_are_against_the_better_program_in_c() -> None:
    text = compare.table({"simphys": [row(130.0)], "c": [row(150.0)], "c:scatter": [row(100.0)]})
    assert "| simphys | 130 (130) | 130 (130) | 1.30 (1.30) | 3e-06 | 50 | 0.5 |" in text.splitlines()


def test_without_other_programs_ours_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPHYS_PEERS", str(tmp_path / "nowhere"))
    options = argparse.Namespace(threads=1, dtype="f32", reps=1, python=[])
    assert [job.label for job in compare.jobs("w1c", options)] == [f"simphys:{name}" for name in machine.compilers()]


def test_a_program_that_prints_no_result_is_told_and_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = compare.Job("broken", (sys.executable, "-c", "raise SystemExit('no such workload')"), tmp_path)
    assert compare.run(job) is None
    assert "broken: no such workload" in capsys.readouterr().err


def test_an_interpreter_is_chosen_by_what_it_can_import() -> None:
    assert compare.interpreter_with("numpy", ["/bin/false", sys.executable]) == sys.executable
    assert compare.interpreter_with("no_such_package", [sys.executable]) is None


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_the_air_track_has_one_loss_at_every_call(integrator: str) -> None:
    chosen = runtime.settings()
    gradient = bench_air_track.build(integrator, chosen.precision, 100)
    assert gradient() == pytest.approx(gradient()) and gradient() > 0


PEAK = """
from benchmarks import machine
held = b"x" * (640 * 2**20)
first = machine.peak_mb()
del held
machine.reset_peak()
before = machine.peak_mb()
again = b"x" * (640 * 2**20)
print(first, before, machine.peak_mb())
"""


def test_the_peak_of_memory_starts_anew() -> None:
    """Measured in a process of its own: here, a collection of garbage could free as much as the test takes.

    What is held, 640 MB, is ten times what the bounds ask for.
    """
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    first, before, again = map(float, done.stdout.split())
    assert before < first - 64
    assert again > before + 64
