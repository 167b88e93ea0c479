"""The benchmark of rollouts, at a small size."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from benchmarks import measuring
from benchmarks.rollout import (
    batch as bench_batch,
)
from benchmarks.rollout import (
    blow_up_checks as bench_looks,
)
from benchmarks.rollout import (
    deterministic as bench_deterministic,
)
from benchmarks.rollout import (
    lattices,
)
from benchmarks.rollout import (
    memory as bench_memory,
)
from benchmarks.rollout import (
    run as bench_rollout,
)
from benchmarks.rollout.memory import Budget
from benchmarks.workloads.lattice import SETTINGS, System, system
from simphys.rollout import run

MODULES = (bench_memory, bench_batch, bench_looks, bench_deterministic)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the precision and the threads of the tests, and a small cloth."""

    def cloth() -> System:
        return system(SETTINGS, 12, 12)

    for module in MODULES:
        monkeypatch.setattr(module.runtime, "init", lambda **settings: None)
        if hasattr(module, "cloth"):
            monkeypatch.setattr(module, "cloth", cloth)
    monkeypatch.setattr(lattices, "cloth", cloth)


def test_the_small_lattice_is_as_large_as_the_robot() -> None:
    of = lattices.robots()
    assert (of.model.nodes, of.model.springs) == (32, 94)


def test_the_first_member_of_a_batch_is_the_lattice_alone() -> None:
    alone, batch = lattices.robots(), lattices.robots(3)
    for of in (alone, batch):
        lattices.gradient(of, 20)
    for name in ("stiffness", "velocity"):
        one, all_three = (getattr(of.params if name == "stiffness" else of.start, name).grad for of in (alone, batch))
        size = np.abs(one.data).max()
        np.testing.assert_allclose(all_three.data[0], one.data, rtol=0, atol=1e3 * np.finfo(one.dtype).eps * size)
        assert np.abs(all_three.data[2] - one.data).max() > 1e-3 * size


@pytest.mark.parametrize(("part", "plan"), [(1.0, "all"), (0.5, "segments"), (0.35, "binomial")])
def test_a_budget_is_kept_and_gradients_are_those_of_store_everything(part: float, plan: str) -> None:
    row = bench_memory.measure(60, part, 1)
    assert row.plan == plan
    assert row.bitwise
    assert (row.recomputed > 0) == (part < 1)
    assert row.seconds > 0 and row.everything_s > 0


def test_budgets_are_told_against_store_everything() -> None:
    row = Budget(4096, 0.1, "segments", 100.0, 95.0, 0.91, 3.0, 2.0, True)
    expected = "| 4,096 | 10% | segments | 100.0 | 95.0 | 0.95 | 0.91 | 3.00 | 1.50 | bitwise equal |"
    assert bench_memory.table([row, row._replace(bitwise=False)]).splitlines()[2] == expected
    assert bench_memory.table([row._replace(bitwise=False)]).endswith("| differ |")


def test_the_long_rollout_is_told_in_words() -> None:
    found = bench_memory.measure_long(50, "100kB")
    assert 0 < found["everything_mb"] < 1
    found |= {"measured_mb": 240.4, "seconds": 71.6, "everything_mb": 26000.0}
    text = bench_memory.long_text(found)
    assert text.startswith("binomial: ") or text.startswith("segments: ")
    assert text.endswith("Measured: 240 MB, 72 s. Store-everything would take 26,000 MB.")


def test_a_batch_is_told_against_one_and_against_a_loop() -> None:
    row = bench_batch.measure(1, 3, 10, 1)
    assert row[:2] == (1, 3) and all(seconds > 0 for seconds in row[2:])
    lines = bench_batch.table([bench_batch.Batch(2, 256, 0.002, 0.1, 0.5, 0.002, 0.19)]).splitlines()
    assert lines[2] == "| 2 | 256 | 2.00 | 100.0 | 50.0 | 500.0 | 5.0 | 95.0 |"


@pytest.mark.parametrize("case", bench_looks.CASES)
def test_looks_are_measured_and_come_back(case: str) -> None:
    own = run.Monitor.advance, run.Monitor._check
    row = bench_looks.measure(case.replace("256", "2"), 5, 2)
    assert all(seconds > 0 for seconds in row[2:6])
    assert row.share > 0
    assert own == (run.Monitor.advance, run.Monitor._check)


def test_without_looks_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*arguments: Any) -> None:
        raise AssertionError("a look")

    monkeypatch.setattr(run.Monitor, "_check", look)
    of = lattices.pendulum()
    bench_looks._without(lambda: lattices.gradient(of, 5))()
    assert of.start.velocity.grad is not None


def test_looks_are_told_by_what_they_add() -> None:
    row = bench_looks.Looks("cloth", 256, 0.102, 0.1, 0.202, 0.2, 0.012)
    expected = "| lattice of 16,384 nodes | 256 | 102.00 | 100.00 | +2.0% | 202.00 | 200.00 | +1.0% | 1.2% |"
    assert bench_looks.table([row]).splitlines()[2] == expected


def test_deterministic_gradients_are_told_by_a_hash_on_all_thread_counts() -> None:
    row = bench_deterministic.measure(1, 4, 1)
    assert row.threads == 1 and len(row.deterministic) == 8
    rows = [bench_deterministic.Deterministic(threads, 0.2, 0.3, "a", "b") for threads in (1, 2)]
    lines = bench_deterministic.table(rows).splitlines()
    assert lines[2] == "| 1 | 200 | 300 | +50% | a | b |"
    assert lines[-1] == "Deterministic gradients are bitwise equal on all thread counts."
    assert "NOT equal" in bench_deterministic.table([rows[0], rows[1]._replace(deterministic="c")])


def test_ways_take_turns_after_a_call_that_does_not_count() -> None:
    calls: list[str] = []
    found = measuring.turns({name: partial(calls.append, name) for name in "ab"}, 2)
    assert "".join(calls) == "ababab"
    assert [len(found[name]) for name in "ab"] == [2, 2]


def test_a_process_of_its_own_may_have_two_threads() -> None:
    call = "rollout.batch.measure(2, 2, 5, 1)"
    assert measuring.apart(call, threads=2)[:2] == [2, 2]


@pytest.mark.parametrize("long", [False, True])
def test_the_command_prints_a_section_a_question(
    long: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in MODULES:
        monkeypatch.setattr(module, "collect", lambda **options: options)
        monkeypatch.setattr(module, "table", lambda found: f"{found}")
    monkeypatch.setattr(bench_memory, "collect_long", dict)
    monkeypatch.setattr(bench_memory, "long_text", lambda found: "long")
    bench_rollout.main(["--reps", "3", *(["--long"] if long else [])])
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("### ")]) == len(MODULES) + long
    assert "{'repetitions': 3}" in lines
