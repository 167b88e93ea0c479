"""A flipped bit anywhere in the files of a run is noticed, or changes nothing that is read."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError, StorageError
from simphys.record import Recorder, Recording

FLIPS, QUICK = 500, 50
"""Number of flipped bits in the whole proof, and in the quick suite."""


def record(folder: Path) -> Recorder:
    """Record tables, static arrays and attributes, in segments."""
    run = Recorder(folder, kind="optimize", provenance={"seed": 1}, scene={"title": "x"})
    for _ in range(2):
        run.extend({"t": {"x": np.random.default_rng(0).normal(size=(5, 3))}}, units={"t": {"x": "m"}})
        run.flush()
    run.write("s", attrs={"law": "spring"}, units={"a": "kg"}, a=np.arange(4.0))
    return run


def read(folder: Path) -> list[Any]:
    """Rows, static arrays, attributes and the scene of a recording."""
    recording = Recording(folder)
    arrays = [recording[path].tolist() for path in ("t/x", "s/a")]
    return [*arrays, recording.attrs("t/x"), recording.attrs("s"), recording.scene, sorted(recording.store.paths())]


@pytest.mark.parametrize("is_complete", [True, False], ids=["one file", "segments"])
def test_a_flipped_bit_is_noticed_or_changes_nothing(
    tmp_path: Path, is_complete: bool, request: pytest.FixtureRequest
) -> None:
    run = record(tmp_path)
    run.close() if is_complete else run.suspend()
    whole, files = read(tmp_path), sorted(tmp_path.rglob("*.h5"))
    assert (len(files) == 1) == is_complete
    chance, noticed = random.Random(0), 0
    count = FLIPS if request.config.getoption("--full") else QUICK
    for number in range(count):
        file = files[number % len(files)]
        content = file.read_bytes()
        place, bit = chance.randrange(len(content)), 1 << chance.randrange(8)
        file.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
        try:
            assert read(tmp_path) == whole, (file.name, place, bit)
        except (InputError, StorageError):
            noticed += 1
        file.write_bytes(content)
    assert noticed > count / 10 and read(tmp_path) == whole
