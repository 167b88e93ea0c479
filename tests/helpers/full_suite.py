"""Which tests `pytest --full` adds: those that tests/full_suite.txt names."""

from __future__ import annotations

import functools
import re
from pathlib import Path

LIST = Path(__file__).parents[1] / "full_suite.txt"
"""Names of tests relative to tests/, one a line; * is any text, ! an exception, # a reason."""
NAMES = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]


def pattern_of(name: str) -> str:
    """Return the pattern of a name with wildcards."""
    return ".*".join(map(re.escape, name.split("*")))


PLACES = [(name, re.compile(pattern_of(name.removeprefix("!").partition("::")[0]))) for name in NAMES]


@functools.cache
def _patterns(file: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compile what may wait, and what may not, of the tests of a file: few of all names are those of one."""
    own = [name for name, place in PLACES if place.fullmatch(file)]
    later = [pattern_of(name) for name in own if not name.startswith("!")]
    stays = [pattern_of(name[1:]) for name in own if name.startswith("!")]
    return re.compile("|".join(later) or "$^"), re.compile("|".join(stays) or "$^")


def belongs_to_full_suite(nodeid: str) -> bool:
    """Return True if only the whole proof runs the test of this node id."""
    name = nodeid.removeprefix("tests/")
    later, stays = _patterns(name.partition("::")[0])
    return later.fullmatch(name) is not None and stays.fullmatch(name) is None
