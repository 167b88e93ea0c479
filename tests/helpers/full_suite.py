"""Which tests wait for a wider suite than `pytest` runs: those that tests/full_suite.txt names."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Literal

Suite = Literal["quick", "landing", "full"]
"""What `pytest` runs, what it runs with --landing, and with --full."""

LIST = Path(__file__).parents[1] / "full_suite.txt"
"""Names of tests relative to tests/, one a line; * is any text, # a reason. `pytest --landing` also runs those marked
+, and every suite those marked !, whatever other lines say; !+ is such an exception for `pytest --landing` alone."""
NAMES = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]


def pattern_of(name: str) -> str:
    """Return the pattern of a name with wildcards."""
    return ".*".join(map(re.escape, name.split("*")))


PLACES = [(name, re.compile(pattern_of(name.lstrip("!+").partition("::")[0]))) for name in NAMES]


@functools.cache
def _patterns(file: str, suite: Suite) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
    """Compile what waits of the tests of a file, and what stays all the same: few of all names are those of one."""
    own = [name for name, place in PLACES if place.fullmatch(file)]
    marks = "!+" if suite == "landing" else "!"
    waits = [pattern_of(name.removeprefix("+")) for name in own if name[0] not in marks]
    excepted = [name for name in own if name[0] == "!" and (suite == "landing" or name[1] != "+")]
    stays = [pattern_of(name.lstrip("!+")) for name in excepted]
    return re.compile("|".join(waits) or "$^"), re.compile("|".join(stays)) if stays else None


def waits(nodeid: str, suite: Suite) -> bool:
    """Return True if a suite leaves the test of this node id to a wider one."""
    if suite == "full":
        return False
    name = nodeid.removeprefix("tests/")
    later, stays = _patterns(name.partition("::")[0], suite)
    return later.fullmatch(name) is not None and (stays is None or stays.fullmatch(name) is None)


def waits_whole(file: str, suite: Suite) -> bool:
    """Return True if a suite leaves all tests of a file, by its path relative to tests/, to a wider one."""
    return waits(f"{file}::", suite) and _patterns(file, suite)[1] is None
