"""Workloads at a small size: overrides, the reference, and agreement of both modes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.workloads import lattice
from benchmarks.workloads.initial_data import hash01, lattice_nodes, lattice_springs
from benchmarks.workloads.workload import REFERENCE, compare, summarize
from simphys.autograd import InputError, runtime

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["size.n=6", "time.steps=5"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.workloads", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def tolerance() -> float:
    return 1e-4 if runtime.settings().precision == "f32" else 1e-10


def test_the_hash_does_not_depend_on_how_many_numbers_are_asked_for() -> None:
    assert np.array_equal(hash01(1000, 3)[:10], hash01(10, 3))


def test_the_hash_follows_32_bit_integer_arithmetic() -> None:
    word = (5 * 2654435761 + 7 * 40503) % 2**32
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        word = (word ^ word >> shift) * factor % 2**32
    assert hash01(6, 7)[5] == word / 2**32


def test_lattice_springs_join_neighbours_once_each() -> None:
    nodes, springs = lattice_nodes(4, 3), lattice_springs(4, 3)
    offsets = nodes[springs[:, 1]] - nodes[springs[:, 0]]
    assert {tuple(offset) for offset in offsets.tolist()} == {(1, 0), (0, 1), (1, 1), (-1, 1)}
    assert len({frozenset(pair) for pair in springs.tolist()}) == len(springs) == 3 * 3 + 4 * 2 + 2 * 3 * 2


def test_elements_are_the_springs() -> None:
    assert lattice.elements({"size.n": 9}) == len(lattice_springs(9, 9))


def test_fused_and_nested_agree() -> None:
    settings = lattice.WORKLOAD.override(SMALL)
    (fused_loss, fused), (nested_loss, nested) = (
        lattice.build(settings, mode).gradient() for mode in ("fused", "nested")
    )
    assert fused_loss == pytest.approx(nested_loss, rel=tolerance())
    for name in fused:
        assert np.linalg.norm(fused[name] - nested[name]) <= tolerance() * np.linalg.norm(nested[name])


def test_the_loss_is_the_same_without_recording() -> None:
    case = lattice.build(lattice.WORKLOAD.override(SMALL), "fused")
    assert case.forward() == pytest.approx(case.gradient()[0], rel=tolerance())


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"Did you mean size\.n\?"):
        lattice.WORKLOAD.override(["size.m=3"])


def test_a_setting_is_a_number() -> None:
    with pytest.raises(InputError, match="the value is a number"):
        lattice.WORKLOAD.override(["size.n=many"])


def test_the_reference_deviates_from_itself_by_nothing() -> None:
    reference: Any = json.loads(REFERENCE.read_text())["w1c"]
    errors = compare("w1c", reference["loss"], reference["grads"])
    nothing = {"norm_rel": 0.0, "entry_err_over_rms": 0.0}
    assert errors == {"loss_rel": 0.0, "k": nothing, "v0": nothing}


def test_a_summary_holds_norm_and_entries() -> None:
    summary = summarize({"k": 2.0 * np.arange(14)})["k"]
    assert summary["norm"] == pytest.approx(2 * np.linalg.norm(np.arange(14)))
    assert (
        summary["entries"] == [2.0 * index for index in summary["indices"]] == [2.0, 6.0, 10.0, 14.0, 18.0, 22.0, 26.0]
    )


def test_the_command_prints_one_result_in_json() -> None:
    done = run("w1c", "--dtype", "f64", "--reps", "2", *SMALL)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    result = json.loads(line.removeprefix("RESULT "))
    assert result["workload"] == "w1c"
    assert result["peer"] == f"simphys:{runtime.compiler}"
    assert result["grad_min_ms"] > 0
    assert "rss_delta_mb" in result
    assert set(result["grads"]) == {"k", "v0"}


def test_help_lists_the_settings() -> None:
    assert "w1c: time.steps=256" in run("--help").stdout


def test_a_wrong_setting_is_told_without_a_traceback() -> None:
    done = run("w1c", "size.m=3")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
