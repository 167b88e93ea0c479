"""A process that runs broken cases, each within limits of time and memory."""

from __future__ import annotations

import random
import tempfile
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

from .limits import BYTES, SECONDS, find_fault, limit_memory, seconds_of, start_clock
from .targets import Target, find_target


def serve(connection: Connection) -> None:
    """Prepare each target (its name) that arrives, and run the cases (seed, number) that follow; answer each.

    The answer is what was done, and what is wrong with how that ended, "" for nothing.
    """
    warnings.simplefilter("ignore")
    start_clock()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "loop").symlink_to(here / "loop")
        (here / "folder").mkdir()
        while True:
            given = connection.recv()
            if isinstance(given, str):
                seconds = seconds_of(given)
                limit_memory(None)
                target = find_target(given, here)
                limit_memory(BYTES)
                connection.send(("", ""))
            else:
                seed, number = given
                connection.send(run_case(target, seed, number, seconds))


def run_case(target: Target, seed: int, number: int, seconds: float = SECONDS) -> tuple[str, str]:
    """Run a case; return the mutation, and what is wrong with how it ends."""
    words, case = target.make_case(random.Random(f"{seed} {number}"))
    return words, find_fault(case, seconds)
