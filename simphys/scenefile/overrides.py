"""Overrides of a scene's values: `section.key=VALUE` with VALUE in TOML syntax."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from simphys.autograd.errors import InputError
from simphys.scenefile.errors import dotted, shown
from simphys.scenefile.locate import split_key
from simphys.scenefile.section import Key

# To set one of these is to choose it: the others are dropped from the scene.
_ALTERNATIVES: tuple[tuple[Key, ...], ...] = ((("time", "steps"), ("time", "duration")),)


@dataclass(frozen=True)
class Override:
    """A key with its new value, and the text it was read from."""

    key: Key
    value: Any
    text: str

    @property
    def who(self) -> str:
        return f"override '{self.text}'"


def parse_override(text: str) -> Override:
    """Read `geometry.anchors.0.stiffness=3`. A bare word that is no TOML value is a string.

    Raises InputError where the text has no '=', no key, or a value that opens a string, list or table and does not
    close it.
    """
    name, equals, written = text.partition("=")
    parts = split_key(name)
    written = written.strip()
    if not equals or parts is None or not written:
        remedy = "Write it like material.stiffness=5e3."
        raise InputError(f"override '{text}'", "must be KEY=VALUE", shown(text), remedy)
    return Override(tuple(parts), _value(text, written), text)


def _value(text: str, written: str) -> Any:
    try:
        table = tomllib.loads(f"value = {written}")
    except tomllib.TOMLDecodeError as error:
        if written[0] in "\"'[{":
            problem = str(error).partition(" (at ")[0]
            who = f"override '{text}'"
            raise InputError(who, "the value must be valid TOML", shown(written), f"{problem}.") from error
        return written
    except (ValueError, RecursionError) as error:  # of Python
        constraint, remedy = "the value has some digits, or some levels", "Write it shorter."
        raise InputError(f"override '{text}'", constraint, str(error), remedy) from error
    return table["value"] if len(table) == 1 else written


def apply_override(scene: dict[str, Any], override: Override) -> Override:
    """Set the value in the scene's nested tables; missing tables are made.

    Returns the override with its key as it turned out: a number is an index in a list and a name in a table.
    Raises InputError for an index that a list does not have and for a key inside a plain value.
    """
    container: Any = scene
    key: Key = ()
    for part in override.key[:-1]:
        part = _step(container, part, key, override)
        if isinstance(container, dict):
            container.setdefault(part, {})
        container = container[part]
        key = (*key, part)
    last = _step(container, override.key[-1], key, override)
    container[last] = override.value
    key = (*key, last)
    for group in _ALTERNATIVES:
        if key in group:
            for other in group:
                if other != key:
                    container.pop(other[-1], None)
    return Override(key, override.value, override.text)


def _step(container: Any, part: str | int, key: Key, override: Override) -> str | int:
    """Convert the part to an index or a name, as the container takes it."""
    if isinstance(container, dict):
        return part
    if not isinstance(container, list):
        remedy = f"Override {dotted(key)} as a whole."
        raise InputError(override.who, f"{dotted(key)} must be a table or a list", shown(container), remedy)
    index = int(part) if str(part).isdecimal() else len(container)
    if index >= len(container):
        remedy = f"Override {dotted(key)} as a whole to change its length."
        constraint = f"{dotted(key)} has {len(container)} elements, counted from 0"
        raise InputError(override.who, constraint, shown(part), remedy)
    return index
