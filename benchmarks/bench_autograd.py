"""`python -m benchmarks.bench_autograd`: what a node of the graph costs, apply plus backward, on one number.

A chain of y = c x with a custom Function and with the built-in product; beside it, in the same run and in turn, PyTorch
and HIPS autograd, where this interpreter or one given by --python has them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from .compare import ROOT, add_interpreters, interpreter_with

LABELS = {"simphys": "simphys", "torch": "PyTorch", "autograd": "HIPS autograd"}
LENGTH = 10_000
REPETITIONS = 7

Costs = dict[tuple[str, str], list[float]]
"""[apply, backward, both], microseconds a node, by (package, chain)."""


def measure(package: str, interpreter: str, length: int) -> dict[str, list[float]]:
    """The costs of a package's chains, in a process of its own outside the checkout."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": ""}
    if package == "simphys":
        environment["PYTHONPATH"] = str(ROOT)
    program = ROOT / "benchmarks" / "chains.py"
    command = [interpreter, "-P", str(program), package, str(length), str(REPETITIONS)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    costs: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return costs


def collect(interpreters: Sequence[str], *, rounds: int, length: int = LENGTH) -> Costs:
    """Best of all rounds by (package, chain); the packages take turns."""
    where = {name: sys.executable if name == "simphys" else interpreter_with(name, interpreters) for name in LABELS}
    best: Costs = {}
    for _ in range(rounds):
        for package, interpreter in where.items():
            if interpreter is None:
                continue
            for name, costs in measure(package, interpreter, length).items():
                known = best.get((package, name), costs)
                best[package, name] = [min(pair) for pair in zip(known, costs, strict=True)]
    return best


def table(best: Costs) -> str:
    """Markdown: microseconds a node, and ours as a part of the others' custom Function."""
    ours = best["simphys", "custom Function"][2]
    lines = [
        "| package | node | apply us | backward us | both us | our custom Function / this |",
        "|---|---|---|---|---|---|",
    ]
    for (package, name), (apply, backward, both) in best.items():
        lines.append(f"| {LABELS[package]} | {name} | {apply:.2f} | {backward:.2f} | {both:.2f} | {ours / both:.2f} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_autograd", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    add_interpreters(parser)
    options = parser.parse_args(arguments)
    print(table(collect([sys.executable, *options.python], rounds=options.rounds)))


if __name__ == "__main__":
    main()
