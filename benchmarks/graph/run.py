"""`python -m benchmarks.graph`: cost of recording and differentiating a node of the graph.

Chains of y = c x are recorded, then differentiated: in Python alone, with one kernel launch each way,
with observers, and across to PyTorch. Also measured: memory of a recorded node, cost per call of `pipe` and `compose`.
PyTorch, HIPS autograd and the compilers' own tape alternate with ours if they are installed; PyTorch's and HIPS's
own chains also run in an interpreter given by --python.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence

from .. import machine
from ..compare import ROOT, add_interpreters, interpreter_with
from ..measuring import cells, joined, less, markdown, ratio
from . import (
    bridges as bench_bridges,
)
from . import (
    calls as bench_calls,
)
from . import (
    kernel_nodes as bench_kernel_nodes,
)
from . import (
    node_memory as bench_node_memory,
)
from . import (
    observers as bench_watched,
)
from .chains import Runs

LABELS = {"simphys": "simphys", "torch": "PyTorch", "autograd": "HIPS autograd"}
CUSTOM, PRODUCTS = "custom Function", "NumPy's two products alone"
NODES = 10_000
REPETITIONS = 5


def measure(package: str, interpreter: str, nodes: int) -> Runs:
    """Measure a package's chains, in a separate process outside the checkout."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": ""}
    if package == "simphys":
        environment["PYTHONPATH"] = str(ROOT)
    program = ROOT / "benchmarks" / "graph" / "chains.py"
    command = [interpreter, "-P", str(program), package, str(nodes), str(REPETITIONS)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    runs: Runs = json.loads(done.stdout.splitlines()[-1])
    return runs


def collect(interpreters: Sequence[str], *, nodes: int, rounds: int) -> dict[str, Runs]:
    """Measure the chains of each package, alternating between packages."""
    where = {name: sys.executable if name == "simphys" else interpreter_with(name, interpreters) for name in LABELS}
    there = {package: interpreter for package, interpreter in where.items() if interpreter is not None}
    found = [[measure(package, interpreter, nodes) for package, interpreter in there.items()] for _ in range(rounds)]
    return {package: joined(runs) for package, runs in zip(there, zip(*found, strict=True), strict=True)}


def table(found: dict[str, Runs]) -> str:
    """Format microseconds per node as a Markdown table, also relative to our custom Function."""
    head = ["package", "node", "apply us", "backward us", "both us", "our custom Function / this"]
    return markdown(head, _rows(found))


def _rows(found: dict[str, Runs]) -> Iterator[list[str]]:
    ours = found["simphys"]
    for package, runs in found.items():
        for name, nodes in runs.items():
            yield [LABELS[package], name, *cells(nodes), ratio(ours[CUSTOM], nodes)]
        if package == "simphys":
            yield [LABELS[package], f"{CUSTOM} less {PRODUCTS}", *less(ours[CUSTOM], ours[PRODUCTS]), ""]


def sections(interpreters: Sequence[str], *, rounds: int, nodes: int = NODES) -> Iterator[str]:
    """Yield the report in Markdown, section by section."""
    chain = f"A chain of {nodes:,} nodes"
    yield from _section(
        "Python alone",
        f"{chain} on one number. Two measures of Python alone: our custom Function less what NumPy takes for the "
        "arithmetic, and a custom Function that only copies. Garbage is collected before each chain; in a loop means: "
        "three chains in a row, the mean, with the full collections that come now and then.",
        table(collect(interpreters, nodes=nodes, rounds=rounds)),
    )
    yield from _section(
        "One kernel launch each way",
        f"{chain}, f64, one thread; the tape's lies in one field. To import quadrants imports PyTorch, too, so that "
        "full garbage collections, met in a loop, have more to look at; `gc.freeze()` after the imports spares that.",
        bench_kernel_nodes.table(bench_kernel_nodes.collect(nodes=nodes, rounds=rounds)),
    )
    yield from _section(
        "Memory of a recorded node",
        "On one number in f64, until backward. Traced: what was asked for; resident: what the process grew by.",
        bench_node_memory.table(bench_node_memory.collect(nodes=nodes), nodes=nodes),
    )
    yield from _section(
        "pipe and compose",
        "A call of functions that return their argument; what is added to the hand-nested call.",
        bench_calls.table(bench_calls.collect(loops=nodes)),
    )
    yield from _section(
        "Watched",
        f"{chain} on one number, custom Function.",
        bench_watched.table(bench_watched.collect(nodes=nodes, rounds=rounds)),
    )
    if bench_bridges.TORCH:
        across = nodes // 10
        yield from _section(
            "Across to PyTorch",
            f"A chain of {across:,} nodes on one number.",
            bench_bridges.table(bench_bridges.collect(nodes=across, rounds=rounds)),
        )


def _section(title: str, text: str, lines: str) -> Iterable[str]:
    return f"### {title}\n", f"{text}\n", f"{lines}\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    add_interpreters(parser)
    options = parser.parse_args(arguments)
    print(f"{machine.describe()}, one in use; load {os.getloadavg()[0]:.1f} at the start.\n")
    for part in sections([sys.executable, *options.python], rounds=options.rounds):
        print(part, flush=True)


if __name__ == "__main__":
    main()
