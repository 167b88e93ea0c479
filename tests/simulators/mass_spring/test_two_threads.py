"""Two threads agree with one, and in every run with themselves: loops that gather have no atomics."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TWO_THREADS = """
from simphys.autograd import runtime
runtime.init(threads=2)
from tests.helpers.contract import assert_same, evaluate
from tests.simulators.mass_spring.contract import STEPS, build
system = build(2, nodes=1500, springs=4001)  # more than the 512 entries below which a loop stays on one thread
found = {}
for work_us in (float("inf"), 0.0):
    runtime.PARALLEL_WORK_US = work_us
    found[work_us] = [evaluate(system, STEPS, mode=mode) for mode in ("nested", "fused", "fused")]
serial, gather = found.values()
for each in (*serial[1:], *gather):
    assert_same(each, serial[0], 1e-12)
assert_same(gather[2], gather[1], 0.0)  # no atomics: bitwise the same in every run
print("agreed")
"""


def test_two_threads_agree_with_one_and_with_themselves() -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", TWO_THREADS],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "agreed"
