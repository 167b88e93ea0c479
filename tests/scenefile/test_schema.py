"""The schema that editors read."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from simphys.autograd.errors import InputError
from simphys.scenefile import schema, write_schema
from simphys.scenefile.simulators import SIMULATORS, find_config


@functools.cache
def made() -> Any:
    return schema()


def of_simulator(name: str) -> Any:
    """The part of the schema that scenes of one simulator keep."""
    return next(part for part in map(referred, made()["anyOf"]) if resolved(part, "simulator", "name")["const"] == name)


def referred(node: Any) -> Any:
    """What a reference stands for."""
    if "allOf" in node:
        (node,) = node["allOf"]
    return made()["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def resolved(node: Any, *keys: str) -> Any:
    """A property inside a property, references followed."""
    for key in keys:
        node = referred(node["properties"][key])
    return node


@pytest.mark.parametrize("name", SIMULATORS)
def test_it_describes_generic_and_simulator_sections_and_refuses_unknown_keys(name: str) -> None:
    whole = of_simulator(name)
    config = find_config(name)
    assert isinstance(config, type)
    assert whole["properties"].keys() == config.model_fields.keys() >= {"simulator", "time", "unknowns"}
    assert {"simulator", "time"} <= set(whole["required"])
    assert whole["additionalProperties"] is False
    assert resolved(whole, "runtime", "arch")["enum"] == ["cpu", "gpu", "cuda", "vulkan", "metal"]
    assert resolved(whole, "time", "dt")["exclusiveMinimum"] == 0


def test_every_section_has_a_description() -> None:
    assert all(model.get("description") for model in made()["$defs"].values())


def test_it_is_written_as_json(tmp_path: Path) -> None:
    write_schema(tmp_path / "scene.schema.json")
    assert json.loads((tmp_path / "scene.schema.json").read_text()) == made()


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "scene.schema.json"
    with pytest.raises(InputError, match=f"schema {path}: must be a file that can be written"):
        write_schema(path)
