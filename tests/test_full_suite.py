"""The quick suite leaves out what the list names, and the list names only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .helpers.full_suite import NAMES, pattern_of, waits, waits_whole


def test_every_name_in_the_list_is_that_of_a_test(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--full"):
        pytest.skip("only the whole suite collects all tests: pytest --full")
    names = [item.nodeid.removeprefix("tests/") for item in request.session.items]
    here = Path(__file__).parent
    files = {str(path.relative_to(here)) for path in here.rglob("test_*.py")}
    if files - {name.partition("::")[0] for name in names}:
        pytest.skip("some files were not collected: run pytest --full without a path, with torch installed")
    patterns = [name.lstrip("!+") for name in NAMES]
    stale = [name for name in patterns if not any(re.fullmatch(pattern_of(name), each) for each in names)]
    assert not stale


def test_an_exception_stays_in_the_quick_suite() -> None:
    name = "tests/test_certificates.py::test_the_gradient_of_a_scene_is_proven"
    assert waits(f"{name}[mpm/walker]", "quick") and waits(f"{name}[mpm/walker]", "landing")
    assert not waits(f"{name}[mpm/walker]", "full")
    assert not waits(f"{name}[wave/drop]", "quick")


def test_what_is_marked_waits_for_a_landing_alone() -> None:
    name = next(name[1:] for name in NAMES if name.startswith("+")).replace("*", "")
    assert waits(name, "quick") and not waits(name, "landing")
    name = "mutation/test_heat.py::test_the_rules_as_they_are_pass[*]"
    assert waits(name, "quick") and not waits(name, "landing")
    assert waits("mutation/test_heat.py::test_a_changed_rule_is_noticed[*]", "landing")


def test_a_file_of_which_nothing_runs_is_told_from_others() -> None:
    assert waits_whole("mutation/test_heat.py", "quick") and not waits_whole("mutation/test_heat.py", "landing")
    assert not waits_whole("mutation/test_functions.py", "quick")
    assert not waits_whole("test_scenes.py", "quick")
    assert not waits_whole("conftest.py", "quick")
