"""The benchmark of a node of the graph, at a small size."""

from __future__ import annotations

import sys

import pytest

from benchmarks import machine, measuring
from benchmarks.graph import (
    bridges as bench_bridges,
)
from benchmarks.graph import (
    calls as bench_calls,
)
from benchmarks.graph import (
    chains,
)
from benchmarks.graph import (
    kernel_nodes as bench_kernel_nodes,
)
from benchmarks.graph import (
    node_memory as bench_node_memory,
)
from benchmarks.graph import (
    observers as bench_watched,
)
from benchmarks.graph import (
    run as bench_autograd,
)
from simphys.autograd import compose, pipe

NODES = [[1.0, 2.0, 3.0], [2.0, 3.0, 6.0], [1.5, 2.5, 4.0]]
HALF = [[value / 2 for value in node] for node in NODES]
OURS = {"custom Function": NODES, "NumPy's two products alone": HALF}


def test_our_chains_have_the_right_gradient() -> None:
    runs = chains.in_turn(chains.simphys_ways(50), 50, 2)
    assert set(OURS) < set(runs)
    assert all(cost > 0 for repetitions in runs.values() for run in repetitions for cost in run)
    assert {len(repetitions) for repetitions in runs.values()} == {2}


def test_a_loop_is_told_by_its_mean() -> None:
    runs = iter([(1.0, 2.0, 5.0), (2.0, 4.0, 5.0), (6.0, 3.0, 5.0)])
    assert chains.in_a_loop(lambda: next(runs))() == (3.0, 3.0, 5.0)


def test_a_wrong_gradient_is_told() -> None:
    way = chains.Way(chains.our_chain(chains.our_identity(), 20), chains.FACTOR**20)
    with pytest.raises(ArithmeticError, match=r"mine: the gradient is 1\.0, not 1\.01"):
        chains.in_turn({"mine": way}, 20, 1)


def test_packages_that_are_not_installed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_autograd, "interpreter_with", lambda package, interpreters: None)
    found = bench_autograd.collect([], nodes=20, rounds=2)  # ours runs outside the checkout
    assert list(found) == ["simphys"]
    assert len(found["simphys"]["custom Function"]) == 2 * bench_autograd.REPETITIONS


def test_nodes_are_told_by_medians_with_minima_and_the_arithmetic_apart() -> None:
    lines = bench_autograd.table({"simphys": OURS, "torch": {"custom Function": NODES}}).splitlines()
    assert lines[2] == "| simphys | custom Function | 1.50 (1.00) | 2.50 (2.00) | 4.00 (3.00) | 1.00 |"
    assert lines[3].endswith("| 2.00 (1.50) | 2.00 |")
    assert lines[4].endswith("less NumPy's two products alone | 0.75 (0.50) | 1.25 (1.00) | 2.00 (1.50) |  |")
    assert lines[5].startswith("| PyTorch | custom Function | 1.50 (1.00)")


def test_kernels_launch_under_every_compiler_beside_its_tape() -> None:
    found = bench_kernel_nodes.collect(nodes=4, rounds=1, repetitions=1)
    assert list(found) == machine.compilers() != []
    names = [f"{n}, {way}" for n in (1, 64) for way in bench_kernel_nodes.WAYS]
    assert all(list(runs) == names for runs in found.values())


def test_kernels_are_compared_with_taichis_tape_on_as_many_elements() -> None:
    taichi = {f"{n}, {way}": NODES if n == 1 else HALF for n in (1, 64) for way in bench_kernel_nodes.WAYS}
    lines = bench_kernel_nodes.table({"taichi": taichi, "quadrants": dict.fromkeys(taichi, HALF)}).splitlines()
    assert lines[6] == "| quadrants | custom Function | 1 | 0.75 (0.50) | 1.25 (1.00) | 2.00 (1.50) | 0.50 |"
    assert lines[14] == "| quadrants | custom Function | 64 | 0.75 (0.50) | 1.25 (1.00) | 2.00 (1.50) | 1.00 |"


@pytest.mark.parametrize("name", bench_node_memory.NODES)
def test_the_memory_of_recorded_nodes_is_measured(name: str) -> None:
    assert bench_node_memory.traced(bench_node_memory.NODES[name](), 5000) > 0


def test_memory_is_told_for_both_lengths() -> None:
    found = measuring.apart("graph.node_memory.measure('built-in sin, saves its input', 1000)")
    assert len(found) == 2 and found[0] > 0
    lines = bench_node_memory.table({"node": (400.4, 500.0)}, nodes=1000).splitlines()
    assert lines[0] == "| node | traced, 1,000 nodes, B a node | resident, 100,000 nodes, B a node |"
    assert lines[2] == "| node | 400 | 500 |"


def test_piped_and_composed_calls_are_the_nested_call() -> None:
    names = {"f": lambda x: 2 * x, "x": 3, "pipe": pipe}
    for count in bench_calls.COUNTS:
        ways = bench_calls.calls(count)
        names["composed"] = eval(ways.pop("compose"), {**names, "compose": compose})
        assert [eval(call, names) for call in ways.values()] == [3 * 2**count] * 3


def test_calls_are_told_by_what_they_add() -> None:
    times = {"nested": [0.1, 0.2, 0.3], "pipe": [0.2, 0.4, 0.5], "composed": [0.3, 0.3, 0.3], "compose": [1.0, 2.0, 3]}
    lines = bench_calls.table([times] * 3).splitlines()
    assert lines[3] == "| 3 | 0.200 (0.100) | 0.200 (0.100) | 0.100 (0.200) | 2.00 (1.00) |"
    assert [len(found["pipe"]) for found in bench_calls.measure(3, 2)] == [2, 2, 2]


def test_watched_nodes_are_told_by_what_is_added() -> None:
    modes = ["unwatched", "profile", "detect_anomaly"]
    assert list(bench_watched.measure(20, 1)) == modes
    lines = bench_watched.table(dict(zip(modes, (HALF, NODES, NODES), strict=True))).splitlines()
    assert lines[3] == "| profile | 1.50 (1.00) | 2.50 (2.00) | 4.00 (3.00) | 2.00 (1.50) | 2.00 |"


def test_nodes_cross_to_torch_and_back() -> None:
    pytest.importorskip("torch", reason="measures what crosses to PyTorch")
    runs = bench_bridges.measure(20, 1)
    assert len(bench_bridges.table(runs).splitlines()) == 2 + len(runs) == 6


def test_the_command_prints_a_section_a_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = (bench_autograd, bench_kernel_nodes, bench_node_memory, bench_calls, bench_watched, bench_bridges)
    monkeypatch.setattr(bench_bridges, "TORCH", True)
    for module in measured:
        monkeypatch.setattr(module, "collect", lambda *arguments, **options: options)
        monkeypatch.setattr(module, "table", lambda found, **options: f"{found}")
    bench_autograd.main(["--rounds", "3", "--python", sys.executable])
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if line.startswith("### ")]) == len(measured)
    assert "{'nodes': 10000, 'rounds': 3}" in lines
