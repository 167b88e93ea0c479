"""Tests that failed are run once more by .ci/steady.py: what passes then is listed, what fails twice fails the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "steady.py"
TESTS = """
import os, pathlib, pytest

@pytest.mark.parametrize("n", range({unsteady}))
def test_unsteady(n):
    seen = pathlib.Path(f"seen {{n}}")
    seen.touch() if not seen.exists() else None
    turns = seen.read_text()
    seen.write_text(turns + "I")
    assert turns

@pytest.mark.parametrize("kind", ["a b::[c]"])
def test_kind(kind):
    assert {steady}
"""


@pytest.mark.skipif(not SCRIPT.exists(), reason="it belongs to a checkout")
@pytest.mark.parametrize(
    ("unsteady", "steady", "status"), [(0, True, 0), (2, True, 0), (1, False, 1), (21, True, 1)], ids=str
)
def test_what_fails_once_is_listed_and_what_fails_twice_fails(
    unsteady: int, steady: bool, status: int, tmp_path: Path
) -> None:
    (tmp_path / "test_some.py").write_text(TESTS.format(unsteady=unsteady, steady=steady))
    command = [sys.executable, str(SCRIPT), "found", "-q", "-p", "no:randomly", "test_some.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = tmp_path / "found"
    listed = found.read_text().splitlines() if found.exists() else []
    assert done.returncode == status, done.stdout
    if status == 0:
        assert listed == [f"test_some.py::test_unsteady[{n}]" for n in range(unsteady)]
