"""Tests that failed are run once more by .ci/steady.py: what passes then is listed, what fails twice fails the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "steady.py"
PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}
"""Only the plugin whose option the script uses: to load all takes most of the time that a run of pytest takes."""
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


pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="it belongs to a checkout")


def run_script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script on the tests in a folder."""
    command = [sys.executable, str(SCRIPT), "found", "-q", *arguments, "test_some.py"]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **PLUGINS}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("unsteady", "steady", "status"), [(0, True, 0), (2, True, 0), (1, False, 1), (21, True, 1)], ids=str
)
def test_what_fails_once_is_listed_and_what_fails_twice_fails(
    unsteady: int, steady: bool, status: int, tmp_path: Path
) -> None:
    (tmp_path / "test_some.py").write_text(TESTS.format(unsteady=unsteady, steady=steady))
    done = run_script(tmp_path)
    found = tmp_path / "found"
    listed = found.read_text().splitlines() if found.exists() else []
    assert done.returncode == status, done.stdout
    if status == 0:
        assert listed == [f"test_some.py::test_unsteady[{n}]" for n in range(unsteady)]


def test_a_failure_without_a_record_of_what_failed_stays_one(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS.format(unsteady=0, steady=False))
    assert run_script(tmp_path, "-p", "no:cacheprovider").returncode == 1
    assert not (tmp_path / "found").exists()
