"""Contacts agree with their closed forms in every row of the tables of `benchmarks.truth`."""

from __future__ import annotations

import pytest

from benchmarks.truth import edges as truth_edges
from benchmarks.truth import run as bench_truth
from benchmarks.truth.cases import CASES, Case
from benchmarks.truth.edges import Edge
from benchmarks.truth.motion import motion
from simphys.simulator.events import select_one_sided


def named(case: Case) -> str:
    return f"{case.law} {case.what}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_adjoint_finite_difference_and_closed_form_agree(case: Case) -> None:
    """Check agreement to rounding if steps are exact; otherwise errors are small, and at least halve with the step.

    The damped bounce ends at another part of the shorter step, on which its errors depend: there they only fall.
    """
    falls = 1.0 if case.what.startswith("damped bounce") else 0.55
    for row in bench_truth.measure(case):
        assert row.whole.disagreement < 1e-6
        if row.half is None:
            assert row.whole.value_error < 1e-12 and row.whole.error < 1e-10
            continue
        assert row.half.disagreement < 1e-6
        assert row.half.value_error < min(0.55 * row.whole.value_error, 0.02)
        assert row.half.error < min(falls * row.whole.error, 0.06)


def test_impacts_of_billiards_are_exact() -> None:
    for row in truth_edges.of_billiards():
        assert row.whole.value_error < 1e-12 and row.whole.error < 1e-10 and row.whole.disagreement < 1e-6


@pytest.mark.parametrize("case", [case for case in CASES if case.law == "impulse"], ids=named)
def test_nothing_is_one_sided_where_they_agree(case: Case) -> None:
    moving, _ = motion(case, halved=False)
    values = moving.changed(case.start(moving.model.dt) if case.start else {})
    found = truth_edges.told(moving, values)
    assert found and select_one_sided(found) == ()


EDGES = truth_edges.edges()


@pytest.mark.parametrize("name", EDGES)
def test_a_kink_is_told_and_nothing_beside_it(name: str) -> None:
    found = EDGES[name]()
    assert found.told and found.beside == ()
    assert has_kink(found) == (name != "rigid: a ball that meets two at once")  # whose step solves for both together
    assert min(abs(found.adjoint - side) for side in (found.below, found.above)) < 2e-3 * size(found)


def size(found: Edge) -> float:
    return max(abs(found.below), abs(found.above))


def has_kink(found: Edge) -> bool:
    return abs(found.above - found.below) > 1e-3 * size(found)


def test_the_tables_have_a_line_for_each_row() -> None:
    rows = bench_truth.measure(CASES[0])
    lines = bench_truth.table(rows).splitlines()
    assert len(lines) == 4 and lines[2].startswith("| impulse | dropped ball, height | 0.5767373 |")
    lines = truth_edges.table({name: EDGES[name]() for name in ["a bounce at the edge of the cone"]}).splitlines()
    assert lines[2].startswith("| a bounce at the edge of the cone | mu |") and "step 42, stick: friction" in lines[2]
