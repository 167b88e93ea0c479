"""Tables of what a core can do at most, and of growth, at a small size."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import cores, growth, roofline, threads


def test_the_share_of_the_roofline_is_that_of_the_larger_bound(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Charges: 53 operations a pair, of which a core of 100 GFLOP/s does 1 in 0.01 ns."""
    pairs = 1024 * 1023
    row = {"fwd_ns_elem_step": 0.4, "grad_min_ms": 1e-6 * pairs * 100 * 1.06}
    monkeypatch.setattr(roofline, "apart", lambda call, **environment: {"copy": {"1000": 50.0}, "multiply_add": 100.0})
    monkeypatch.setattr(roofline.compare, "run", lambda job: row)
    roofline.main(["w5"])
    printed = capsys.readouterr().out
    assert "| w5 | 0.4 | 1.06 | 0 | 53 | 0 | 50 | arithmetic | 50% |" in printed


def test_bounds_of_a_core_are_found() -> None:
    found = roofline.bounds()
    assert found["multiply_add"] > 0 and all(rate > 0 for rate in found["copy"].values())


def test_the_growth_of_a_workload_is_measured_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    growth.main(["w5", "--largest", "128", "--reps", "1", "--picture", str(tmp_path / "growth.png")])
    assert "| w5 | 16,256: " in capsys.readouterr().out
    assert (tmp_path / "growth.png").stat().st_size > 10_000


def test_the_speed_up_is_that_of_the_fastest_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([8.0, 5.0, 9.0, 4.0] * 2)  # one and two threads, in two rounds, under each compiler
    monkeypatch.setattr(threads.compare, "run", lambda job: {"grad_min_ms": next(times)})
    monkeypatch.setattr(cores, "find_speed_ups", lambda processes: {"copies": 0.9 * processes})
    threads.main(["w2", "--most", "2", "--rounds", "2"])
    out = capsys.readouterr().out
    assert "Speed-up of 2 processes at most: copies 1.80." in out and "| w2 | 8 | 4 | 2.00 |" in out
    assert threads.counts(12) == [1, 2, 4, 8, 12] and threads.counts(1) == [1]


def test_the_work_of_several_processes_is_compared_with_that_of_one() -> None:
    found = cores.find_speed_ups(2, seconds=0.01)
    assert found.keys() == cores.WORK.keys() and all(factor > 0 for factor in found.values())


@pytest.mark.parametrize("name", growth.SIDES)
def test_sizes_grow_and_their_steps_shrink(name: str) -> None:
    sizes = list(growth.sizes(name))
    elements, steps = [size.elements for size in sizes], [size.settings["time.steps"] for size in sizes]
    assert elements == sorted(elements) and steps == sorted(steps, reverse=True) and steps[-1] >= 1


@pytest.mark.parametrize("main", [growth.main, roofline.main, threads.main])
def test_an_unknown_workload_is_refused(main: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["w9"])  # type: ignore[operator]
    assert "no workload w9; there are " in capsys.readouterr().err
