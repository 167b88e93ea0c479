"""The resolved scene as the text of a scene file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LONG = 400
"""Number of characters of a list above which its middle is left out."""


def to_toml(scene: Mapping[str, Any]) -> str:
    """Write the tables of a scene as TOML; long lists are shortened, so that it can be read."""
    lines: list[str] = []
    _write(lines, scene, ())
    return "\n".join(lines).strip()


def _write(lines: list[str], table: Mapping[str, Any], path: tuple[str, ...]) -> None:
    tables = {name: value for name, value in table.items() if isinstance(value, Mapping) and value and len(path) < 2}
    plain = {name: value for name, value in table.items() if name not in tables and value is not None}
    if path and (plain or not tables):
        lines += ["", f"[{'.'.join(path)}]"]
    for name, value in plain.items():
        rows = value if isinstance(value, list) else []
        if rows and all(isinstance(row, Mapping) for row in rows):
            lines += [f"{name} = [", *(f"  {_format(row)}," for row in rows), "]"]
        else:
            lines.append(f"{name} = {_format(value)}")
    for name, value in tables.items():
        _write(lines, value, (*path, name))


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join([f"{name} = {_format(each)}" for name, each in value.items() if each is not None])
        return f"{{ {inside} }}"
    if isinstance(value, list):
        text = f"[{', '.join([_format(each) for each in value])}]"
        if len(text) > LONG:
            return f"{text[: LONG // 2]} ...   # {len(value)} entries"
        return text
    return json.dumps(value, ensure_ascii=False)
