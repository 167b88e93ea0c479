"""Fits, graphs and rollouts leave files and objects as they were. `python -m benchmarks.leaks` prints memory, too."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from benchmarks.leaks import WORK, find_growth

NUMBERS = {"iterations of a fit": 200, "graphs": 400, "rollouts": 200}


@pytest.mark.skipif(sys.platform != "linux", reason="open files are read from /proc")
@pytest.mark.parametrize("name", WORK)
def test_what_was_done_leaves_nothing_behind(name: str) -> None:
    work, number = WORK[name][0], NUMBERS[name]
    found = find_growth(work, number)
    assert found.files == 0
    assert found.objects < number // 2  # not one for each repetition; h5py keeps some references for a while


@pytest.mark.skipif(sys.platform != "linux", reason="open files are read from /proc")
def test_a_leak_is_noticed() -> None:
    held: list[Any] = []

    def leaking(count: int) -> None:
        held.extend([(open("/dev/null"), []) for _ in range(count)])  # noqa: SIM115 that is the leak

    found = find_growth(leaking, 20)
    assert found.files == 20 and found.objects >= 40
    for file, _ in held:
        file.close()
