"""The benchmark of the scan, at a small size."""

from __future__ import annotations

import numpy as np
import pytest

from .examples import load

bench = load("bench_jacobian_chains")


def test_both_questions_are_measured_and_answered_alike_by_all_ways() -> None:
    rows = bench.measure(5, 2, 1)
    assert [(row.wanted, row.steps, row.n) for row in rows] == [("first", 5, 2), ("all", 5, 2)]
    assert [row.multiplications for row in rows] == [(4 * 8 + 4) / 20, (3 * 8 + 5 * 4) / 20]
    assert all(time > 0 for row in rows for time in (row.reverse_us, row.scan_us, row.compiled_us))


def test_wrong_adjoints_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "reverse", lambda jacobians, adjoint: adjoint)
    with pytest.raises(ArithmeticError, match="reverse, first: wrong adjoints"):
        bench.measure(5, 2, 1)


def test_the_loops_take_the_last_step_first() -> None:
    jacobians, adjoint = np.array([[[2.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [3.0, 1.0]]]), np.array([1.0, 1.0])
    np.testing.assert_array_equal(bench.reverse(jacobians, adjoint), [8, 5])
    np.testing.assert_array_equal(bench.reverse_all(jacobians, adjoint), [[8, 5], [4, 1], [1, 1]])


def test_the_table_names_the_largest_state_for_which_the_scan_wins() -> None:
    rows = [bench.Row("all", 256, n, reverse_us=10, scan_us=n, compiled_us=1.5, multiplications=n) for n in (2, 8, 16)]
    lines = bench.table(rows).splitlines()
    assert lines[3] == "| all states | 256 | 8 | 10 | 8 | 0.80 | 8.0 | 1.5 |"
    assert lines[-1] == "- all states, T = 256: 8 by one call a step, none by the compiled loop"


def test_the_measurement_runs_in_a_process_of_its_own() -> None:
    assert [row.n for row in bench.collect(lengths=[3], sizes=[1, 2], repetitions=1)] == [1, 1, 2, 2]
