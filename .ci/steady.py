"""Run pytest, and run each test that failed once more, alone in a fresh process.

`python .ci/steady.py FILE [ARGUMENT ...]` hands its arguments to pytest. A test that passes the second time is
unsteady: FILE gets its name, and the run goes on. It says one thing on one run and another on the next, and is the
next to be mended. Exit status: 0 if all tests passed in the end, else that of pytest.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

MOST = 20
"""Largest number of failed tests that are run once more: beyond it, something is broken."""
FAILED = 1
"""Exit status of pytest when tests failed, and nothing worse happened."""


def run_pytest(*arguments: str) -> int:
    """Run pytest in a process of its own."""
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def main() -> int:
    """Run the tests that the command line asks for."""
    unsteady, arguments = Path(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as cache:
        status = run_pytest("-o", f"cache_dir={cache}", *arguments)
        record = Path(cache, "v/cache/lastfailed")
        failed = list(json.loads(record.read_text())) if record.exists() else []
    if status != FAILED or not 0 < len(failed) <= MOST or not all("::" in test for test in failed):
        return status
    for test in failed:
        print(f"\n=== Once more: {test}", flush=True)
        if run_pytest("-n0", "-p", "no:cacheprovider", test) != 0:
            return FAILED
        with unsteady.open("a") as file:
            print(test, file=file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
