"""`python -m benchmarks.devices`: gradients of every scene that ships on a device, beside the processor's in f64.

    python -m benchmarks.devices                          # all scenes, on the first GPU that is here
    python -m benchmarks.devices --arch cuda --precision f64 --jobs 8 smoke wave/drop

The gradient is that of a random combination of states after the first steps, by each parameter and initial value. Each
scene has a process of its own, which is ended after `--seconds`: kernels of rigid bodies compile for minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from simphys.app.start_scene import CHECKOUT, list_scenes
from simphys.autograd import InputError
from simphys.diagnose.device import STEPS, compare_first_steps
from simphys.experiment.scene import load_scene

from .measuring import markdown

HEADS = ("scene", "verdict", "largest difference", "seconds", "finding")


class Row(NamedTuple):
    """What was found of a scene."""

    scene: str
    verdict: str
    """agrees, kink, differs, refused, failed, or not done in time."""
    difference: float | None
    seconds: float
    finding: str

    def cells(self) -> tuple[str, ...]:
        difference = "" if self.difference is None else f"{self.difference:.1e}"
        finding = "" if self.verdict == "agrees" else self.finding.replace("|", "/")
        return self.scene, self.verdict, difference, f"{self.seconds:.0f}", finding


def compare_scene(path: Path, arch: str, precision: str, steps: int) -> Row:
    """Compare one scene, in this process."""
    began = time.perf_counter()
    name = f"{path.parent.name}/{path.stem}"
    try:
        scene = load_scene(path, [f"runtime.arch={arch}", f"runtime.precision={precision}"])
        statements, finding = compare_first_steps(scene.parts[0], steps)
    except InputError as error:
        return Row(name, "refused", None, time.perf_counter() - began, str(error))
    worst = max(statement.error for statement in statements)
    verdict = "agrees" if not any(statement.note for statement in statements) else "kink"
    if not all(statement.passed for statement in statements):
        verdict = "differs"
    return Row(name, verdict, worst, time.perf_counter() - began, finding)


def compare_apart(path: Path, arguments: Sequence[str], seconds: float) -> Row:
    """Compare one scene in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.devices", "--here", str(path), *arguments]
    name = f"{path.parent.name}/{path.stem}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return Row(name, "not done in time", None, seconds, "")
    if done.returncode:
        return Row(name, "failed", None, 0.0, done.stderr.strip().splitlines()[-1][:200])
    return Row(*json.loads(done.stdout.splitlines()[-1]))


def main(given: Sequence[str] | None = None) -> list[Row]:
    """Compare scenes and print a table. Returns its rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.devices", description=__doc__.partition("\n")[0])
    parser.add_argument("scenes", nargs="*", help="simulators or scenes, as simulator/name; all by default")
    parser.add_argument("--arch", default="gpu")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--jobs", type=int, default=1, help="scenes at once")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(given)
    if chosen.here is not None:
        row = compare_scene(chosen.here, chosen.arch, chosen.precision, chosen.steps)
        print(json.dumps(row))
        return [row]
    arguments = ["--arch", chosen.arch, "--precision", chosen.precision, "--steps", str(chosen.steps)]
    paths = [Path(line.path).resolve() for line in list_scenes(CHECKOUT)]
    wanted = [p for p in paths if not chosen.scenes or {p.parent.name, f"{p.parent.name}/{p.stem}"} & {*chosen.scenes}]

    def compare(path: Path) -> Row:
        row = compare_apart(path, arguments, chosen.seconds)
        print(*row.cells(), sep="  ", file=sys.stderr, flush=True)
        return row

    with ThreadPoolExecutor(chosen.jobs) as pool:
        rows = list(pool.map(compare, wanted))
    print(markdown(HEADS, [row.cells() for row in rows]))
    print(", ".join(f"{count} {verdict}" for verdict, count in Counter(row.verdict for row in rows).most_common()))
    return rows


if __name__ == "__main__":
    main()
