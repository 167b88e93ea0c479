"""The pieces of scene files and of sweeps that pages show have only keys and values that are valid there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from simphys.app.sweep.spec import SweepFile
from simphys.scenefile import Problem
from simphys.scenefile.simulators import find_config, known_names

from .test_guide import DOCS

BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ELSEWHERE = ("oscillators:OscillatorConfig", "project")
"""Blocks of an own package, which test_own_package.py installs and runs."""


def blocks() -> Iterator[Any]:
    for page in (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))):
        text = page.read_text(encoding="utf-8")
        for found in BLOCK.finditer(text):
            if not any(name in found[1] for name in ELSEWHERE):
                yield pytest.param(found[1], id=f"{page.stem}-{text.count(chr(10), 0, found.start()) + 1}")


def mistakes(shown: dict[str, Any], whole: type[BaseModel]) -> list[str]:
    """List what is wrong in the sections shown; a page may leave out what a whole file needs."""
    found = []
    for name, value in shown.items():
        if (field := whole.model_fields.get(name)) is None:
            found.append(f"{name}: unknown")
            continue
        kind: Any = Annotated[field.annotation, field]
        try:
            TypeAdapter(kind).validate_python(value)
        except ValidationError as error:
            wrong = [each for each in error.errors() if each["type"] != "missing"]
            found += [f"{name}.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in wrong]
    return found


def candidates(shown: dict[str, Any]) -> list[type[BaseModel]]:
    """List what the piece may belong to: the simulator that it names, or any, or a sweep."""
    named = shown.get("simulator", {}).get("name")
    configs = [find_config(name) for name in ([named] if named else known_names())]
    return [SweepFile, *[config for config in configs if not isinstance(config, Problem)]]


def wrong(text: str) -> list[str]:
    """Give the mistakes as a piece of that which it fits best."""
    shown = tomllib.loads(text)
    return min((mistakes(shown, whole) for whole in reversed(candidates(shown))), key=len)


@pytest.mark.parametrize("text", list(blocks()))
def test_what_a_page_shows_is_valid(text: str) -> None:
    assert wrong(text) == []


def test_a_wrong_key_and_a_wrong_value_are_found() -> None:
    assert wrong("[time]\ndt = 1e-3\nstep = 3") == ["time.step: Extra inputs are not permitted"]
    assert wrong('[optimizer]\nmethod = "newton"')[0].startswith("optimizer.method: Input should be 'least_squares'")
    assert wrong("[gravitation]\nx = 1") == ["gravitation: unknown"]
