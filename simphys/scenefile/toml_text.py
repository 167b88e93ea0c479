"""Scenes as TOML text: the reverse of reading one, for scenes that a program makes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(tables: Mapping[str, Any]) -> str:
    """Format nested tables of strings, numbers, lists and tables, as `to_dict` gives them."""
    return "\n".join(_lines(tables, ())).strip() + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Format the plain values of a table first, since they would belong to a table that stands before them."""
    for key, value in table.items():
        if not _is_table(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        if not _is_table(value):
            continue
        name = ".".join(map(_key, (*path, key)))
        for each in value if isinstance(value, list) else [value]:
            yield f"\n[[{name}]]" if isinstance(value, list) else f"\n[{name}]"
            yield from _lines(each, (*path, key))


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)
    )


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
    return repr(value)
