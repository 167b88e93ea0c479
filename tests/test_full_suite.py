"""The quick suite leaves out what the list names, and the list names only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .helpers.full_suite import NAMES, belongs_to_full_suite, pattern_of


def test_every_name_in_the_list_is_that_of_a_test(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--full"):
        pytest.skip("only the whole suite collects all tests: pytest --full")
    names = [item.nodeid.removeprefix("tests/") for item in request.session.items]
    here = Path(__file__).parent
    files = {str(path.relative_to(here)) for path in here.rglob("test_*.py")}
    if files - {name.partition("::")[0] for name in names}:
        pytest.skip("some files were not collected: run pytest --full without a path, with torch installed")
    patterns = [name.removeprefix("!") for name in NAMES]
    stale = [name for name in patterns if not any(re.fullmatch(pattern_of(name), each) for each in names)]
    assert not stale


def test_an_exception_stays_in_the_quick_suite() -> None:
    name = "tests/test_certificates.py::test_the_gradient_of_a_scene_is_proven"
    assert belongs_to_full_suite(f"{name}[mpm/walker]")
    assert not belongs_to_full_suite(f"{name}[wave/drop]")
