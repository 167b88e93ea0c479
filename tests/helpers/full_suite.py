"""Which tests `pytest --full` adds: those that tests/full_suite.txt names."""

from __future__ import annotations

import re
from pathlib import Path

LIST = Path(__file__).parents[1] / "full_suite.txt"
"""Names of tests relative to tests/, one a line; * is any text, ! an exception, # a reason."""


def pattern_of(name: str) -> re.Pattern[str]:
    """Compile a name with its wildcards."""
    return re.compile(".*".join(map(re.escape, name.split("*"))))


NAMES = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
_LATER = [pattern_of(name) for name in NAMES if not name.startswith("!")]
_EXCEPT = [pattern_of(name[1:]) for name in NAMES if name.startswith("!")]


def belongs_to_full_suite(nodeid: str) -> bool:
    """Return True if only the whole proof runs the test of this node id."""
    name = nodeid.removeprefix("tests/")
    return any(each.fullmatch(name) for each in _LATER) and not any(each.fullmatch(name) for each in _EXCEPT)
