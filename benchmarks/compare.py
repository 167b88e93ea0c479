"""`python -m benchmarks.compare`: ours, by each kernel compiler, and other programs alternate on the same workloads.

The other programs are found through SIMPHYS_PEERS (default: ../shared/peers, if that exists). Each runs in the first
of the given interpreters, this one before them, that can import what it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import machine

ROOT = Path(__file__).resolve().parent.parent
PEERS = {"c": "numpy", "taichi": "taichi", "warp": "warp", "jax": "jax", "torch": "torch"}
VARIANTS = {
    ("c", "w1c"): ("", "scatter"), ("warp", "w1c"): ("", "graph"), ("jax", "w1c"): ("", "ckpt"),
    ("warp", "w2"): ("", "graph"), ("jax", "w2"): ("", "ckpt"),
    ("warp", "w1r"): ("", "graph"), ("jax", "w1r"): ("", "ckpt"),
}  # fmt: skip
TIMEOUT_S = 300

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """Command that prints a RESULT line."""

    label: str
    command: tuple[str, ...]
    folder: Path


def peers_folder() -> Path | None:
    """Folder of the other programs, or None."""
    given = os.environ.get("SIMPHYS_PEERS")
    folder = Path(given) if given else ROOT.parent / "shared" / "peers"
    return folder if folder.is_dir() else None


def interpreter_with(module: str, interpreters: Sequence[str]) -> str | None:
    """Find the first interpreter that can import `module`."""
    for interpreter in interpreters:
        probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        if subprocess.run([interpreter, "-P", "-c", probe], check=False, capture_output=True).returncode == 0:
            return interpreter
    return None


def own_job(workload: str, compiler: str, options: argparse.Namespace, *overrides: str) -> Job:
    """Make our job under a kernel compiler, with settings `KEY=NUMBER` that differ from the defaults."""
    command = (sys.executable, "-m", "benchmarks.workloads", workload, *_common(options), "--compiler", compiler)
    return Job(f"simphys:{compiler}", (*command, *overrides), ROOT)


def _common(options: argparse.Namespace) -> tuple[str, ...]:
    return ("--threads", str(options.threads), "--dtype", options.dtype, "--reps", str(options.reps))


def jobs(workload: str, options: argparse.Namespace) -> list[Job]:
    """List our jobs, one for each kernel compiler that is installed, then those of the peers that can run."""
    common = _common(options)
    found = [own_job(workload, name, options) for name in machine.compilers()]
    folder = peers_folder()
    for peer, module in PEERS.items() if folder else ():
        interpreter = interpreter_with(module, (sys.executable, *options.python))
        if interpreter is None or folder is None:
            continue
        for variant in VARIANTS.get((peer, workload), ("",)):
            if options.threads > 1 and (peer == "warp" or variant == "scatter"):
                continue  # these are serial
            command = (interpreter, str(folder / f"peer_{peer}.py"), workload, *common)
            label = peer + (f":{variant}" if variant else "")
            found.append(Job(label, command + (("--variant", variant) if variant else ()), folder))
    return found


def run(job: Job) -> Row | None:
    """Run a job and return its RESULT; None, with a message on stderr, if it has none."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            job.command, cwd=job.folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{job.label}: no result in {TIMEOUT_S} s", file=sys.stderr)
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        print(f"{job.label}: {(done.stderr.strip().splitlines() or ['no result'])[-1]}", file=sys.stderr)
        return None
    row: Row = json.loads(lines[-1].removeprefix("RESULT "))
    print(f"{job.label}: forward {row['fwd_min_ms']} ms, gradient {row['grad_min_ms']} ms", file=sys.stderr)
    return row


def collect(workload: str, options: argparse.Namespace) -> dict[str, list[Row]]:
    """Collect results by label, with one run of each job per round, so that a slow period affects all of them."""
    rows: dict[str, list[Row]] = {}
    todo = jobs(workload, options)
    for _ in range(options.rounds):
        for job in todo:
            row = run(job)
            if row is not None:
                rows.setdefault(job.label, []).append(row)
    return rows


def table(rows: dict[str, list[Row]]) -> str:
    """Format a Markdown table: median (minimum) milliseconds, and the gradient's ratio to the best C program's."""
    minima = {label: min(row["grad_min_ms"] for row in runs) for label, runs in rows.items()}
    medians = {label: statistics.median(row["grad_ms"] for row in runs) for label, runs in rows.items()}
    programs_in_c = [label for label in rows if label.partition(":")[0] == "c"]
    best = min(programs_in_c, key=minima.__getitem__, default=None)
    lines = [
        "| program | forward ms | gradient ms | gradient / best C | largest error | memory MB | first gradient s |",
        "|---|---|---|---|---|---|---|",
    ]
    for label in sorted(rows, key=minima.__getitem__):
        runs = rows[label]
        forward = (
            f"{statistics.median(row['fwd_ms'] for row in runs):.4g} ({min(row['fwd_min_ms'] for row in runs):.4g})"
        )
        gradient = f"{medians[label]:.4g} ({minima[label]:.4g})"
        ratio = f"{medians[label] / medians[best]:.2f} ({minima[label] / minima[best]:.2f})" if best else "-"
        memory = max(row.get("rss_delta_mb", row["rss_mb"] - row["rss_import_mb"]) for row in runs)
        cold = min(row["cold_s"] for row in runs)
        lines.append(
            f"| {label} | {forward} | {gradient} | {ratio} | {largest_error(runs[0]):.0e} | {memory:.0f} | {cold} |"
        )
    return "\n".join(lines)


def largest_error(row: Row) -> float:
    """Format the errors of the loss and of the gradients' norms, relative to the f64 reference."""
    errors = row["err"]
    return max([errors.get("loss_rel", 0.0), *(e["norm_rel"] for e in errors.values() if isinstance(e, dict))])


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=5, help="how often every program is run")
    parser.add_argument("--reps", type=int, default=5, help="repetitions within a run")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f32")
    add_interpreters(parser)


def add_interpreters(parser: argparse.ArgumentParser) -> None:
    help_text = "a further interpreter, with other programs' packages"
    parser.add_argument("--python", action="append", default=[], metavar="PATH", type=_interpreter, help=help_text)


def _interpreter(path: str) -> str:
    if not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"there is no interpreter {path}")
    return path


def main(arguments: list[str] | None = None) -> None:
    from .workloads.run import NAMES

    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(NAMES)}; default all")
    add_options(parser)
    options = parser.parse_args(arguments)
    if unknown := set(options.workloads) - set(NAMES):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    for workload in options.workloads or NAMES:
        print(f"{workload}, {options.threads} thread(s), {options.dtype}, {options.rounds} rounds\n")
        print(table(collect(workload, options)), flush=True)


if __name__ == "__main__":
    main()
