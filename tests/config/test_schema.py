"""The schema that editors read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simphys.autograd.errors import InputError
from simphys.config import schema, write_schema


def resolved(node: Any, *keys: str) -> Any:
    """A property inside a property, references followed."""
    whole = schema()
    for key in keys:
        node = node["properties"][key]
        if "allOf" in node:
            (node,) = node["allOf"]
        if "$ref" in node:
            node = whole["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def test_it_describes_generic_and_simulator_sections_and_refuses_unknown_keys() -> None:
    whole = schema()
    assert {"simulator", "time", "unknowns", "geometry", "material"} <= whole["properties"].keys()
    assert whole["required"] == ["simulator", "time", "geometry"]
    assert whole["additionalProperties"] is False
    assert resolved(whole, "runtime", "arch")["enum"] == ["cpu", "cuda", "vulkan", "metal"]
    assert resolved(whole, "simulator", "name")["const"] == "mass_spring"
    assert resolved(whole, "time", "dt")["exclusiveMinimum"] == 0


def test_every_section_has_a_description() -> None:
    assert all(model.get("description") for model in schema()["$defs"].values())


def test_it_is_written_as_json(tmp_path: Path) -> None:
    write_schema(tmp_path / "scene.schema.json")
    assert json.loads((tmp_path / "scene.schema.json").read_text()) == schema()


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "scene.schema.json"
    with pytest.raises(InputError, match=f"schema {path}: must be a file that can be written"):
        write_schema(path)
