"""Scenes that ship, files and run folders, with many mutations; random steps and fits: 0 findings are expected."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..compare import ROOT
from .limits import SECONDS, seconds_of
from .targets import FILES, FITS, RANDOM_STEPS, RUN_FOLDERS, SCENES, SIMULATED, SWEEPS
from .worker import serve

_CONTEXT = multiprocessing.get_context("spawn")
START_SECONDS = 300.0
"""Time in which a worker prepares a target; kernels may have to be compiled."""
HANGS = 12
"""Times the time of a case after which it hangs: it waits for something, or a library keeps the interpreter."""
STEPS_EACH = 100
"""Random steps for a process: what they compile stays in its memory."""


class Finding(NamedTuple):
    """A case that did not end as it should."""

    target: str
    seed: int
    number: int
    mutation: str
    ending: str

    def __str__(self) -> str:
        repeat = f"python -m benchmarks.fuzz --target {self.target} --seed {self.seed} --number {self.number}"
        return f"{repeat}\n  {self.mutation}\n  {self.ending}"


class Worker:
    """A process that runs cases, replaced by another one when it ends or hangs."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Any = None

    def cases(self, target: str, seed: int, numbers: Iterable[int]) -> Iterator[Finding]:
        """Run numbered cases of a target; yield the findings. Errors: RuntimeError if the target itself fails."""
        is_loaded = False
        for count, number in enumerate(numbers, 1):
            if not is_loaded:
                self._load(target)
            words, ending = self._ask((seed, number), HANGS * seconds_of(target))
            if target in RANDOM_STEPS and count % STEPS_EACH == 0:
                self.close()
            is_loaded = self._process is not None
            if ending:
                yield Finding(target, seed, number, words, ending)

    def _load(self, target: str) -> None:
        if self._process is None:
            if str(ROOT) not in sys.path:  # which the new process takes over
                sys.path.append(str(ROOT))
            self._connection, there = _CONTEXT.Pipe()
            self._process = _CONTEXT.Process(target=serve, args=(there,), daemon=True)
            self._process.start()
            there.close()
        _, ending = self._ask(target, START_SECONDS)
        if ending:
            raise RuntimeError(f"{target} itself: {ending}")

    def _ask(self, given: Any, seconds: float) -> tuple[str, str]:
        """Send a target or a case; return what was done, and what is wrong with how it ended."""
        try:
            self._connection.send(given)
            if self._connection.poll(seconds):
                return self._connection.recv()
            ending = "a hang that no signal ends"
        except (EOFError, ConnectionError):
            self._process.join(SECONDS)
            ending = f"the process ended with code {self._process.exitcode}"
        self.close()
        return "", ending

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def choose_targets(begin: str, *, simulate: bool) -> list[str]:
    """Names of the targets that begin so; those that are simulated if asked for, or named."""
    if simulate:
        begin = f"simulated/{begin.removeprefix('simulated/')}"
    everything = (
        *SCENES,
        *SWEEPS,
        *FILES,
        *RUN_FOLDERS,
        *RANDOM_STEPS,
        *FITS,
        *(SIMULATED if begin.startswith("simulated") else ()),
    )
    return [target for target in everything if target.startswith(begin)]


def main(arguments: list[str] | None = None) -> None:
    """Run cases spread evenly over the targets, or one case again; exit with 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="number of cases of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default="", help="what begins so alone: smoke/drag, files, runs/fit, steps")
    parser.add_argument("--number", type=int, help="a case of that target alone")
    parser.add_argument("--simulate", action="store_true", help="mutations of scenes that load are simulated, too")
    given: Any = parser.parse_args(arguments)
    targets = choose_targets(given.target, simulate=given.simulate)
    each = max(1, given.cases // max(1, len(targets)))
    numbers = range(each) if given.number is None else range(given.number, given.number + 1)
    began, begun, count, worker = time.monotonic(), 0, 0, Worker()

    def counted() -> Iterator[int]:
        nonlocal begun
        for number in numbers:
            begun += 1
            yield number

    try:
        for place, target in enumerate(targets, 1):
            for finding in worker.cases(target, given.seed, counted()):
                count += 1
                print(finding, flush=True)
            print(f"{place}/{len(targets)} {target}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    seconds = time.monotonic() - began
    print(f"{begun} cases of {len(targets)} targets in {seconds:.0f} s, seed {given.seed}: {count} findings")
    sys.exit(count > 0)
