"""Tables written as TOML are read back as they were."""

from __future__ import annotations

import math
import tomllib

import pytest

from simphys.experiment.scene import load_scene
from simphys.scenefile import to_dict
from simphys.scenefile.toml_text import to_toml


def test_any_tables_are_read_back_as_they_were() -> None:
    tables = {
        "title": 'A "quoted" \\ title,\nµ and \t tabs \x7f',
        "flag": True,
        "numbers": [1, 2.5, -1e-300, math.inf],
        "rows": [[0.1, 0.2], [3.0, 4.0]],
        "empty": {},
        "none": [],
        "a key": {"with space": 1, "inner": {"deep": {"x": 1e22}}},
        "listed": [{"x": 1, "box": {"first": [0], "last": [2]}}, {"x": 2, "more": [{"y": 1}, {"y": 2}]}],
        "mixed": [[{"a": 1}], 3],
    }
    assert tomllib.loads(to_toml(tables)) == tables


@pytest.mark.parametrize("name", ["mass_spring/two_gliders", "rigid/bounce", "billiards/carom", "heat/source"])
def test_a_shipped_scene_is_read_back_as_it_was(name: str) -> None:
    tables = to_dict(load_scene(f"scenes/{name}.toml").config)
    assert tomllib.loads(to_toml(tables)) == tables
