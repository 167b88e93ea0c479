"""Requests for unknowns in places where none can be are refused with the lines that seek the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import simphys
from simphys.autograd.errors import InputError

SCENE = """
[simulator]
name = "pendulum"
[time]
dt = 0.01
[geometry]
length = 1.0
[material]
mass = 1.0
[state]
angle = [1.0]
[unknowns.length]
parameter = "length"
[observations]
file = "angles.txt"
channels = [{ column = 1, field = "angle", node = 0, unit = "rad", sigma = 0.01 }]
"""


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    (tmp_path / "angles.txt").write_text("0 1\n0.1 0.9\n0.2 0.7\n")
    path = tmp_path / "scene.toml"
    path.write_text(SCENE)
    return path


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ('observations.begin="unknown"', '[unknowns.late], parameter = "channel_delay", tied = true, scale = 0.1'),
        ('unknowns.b.parameter="begin"', 'write the lines [unknowns.late], parameter = "channel_delay", tied = true'),
        ('unknowns.b.parameter="observations.begin"', 'with several experiments also experiments = "each"'),
        ('observations.channels.0.gain="unknown"', 'parameter = "channel_gain", entries = [0]'),
        ('unknowns.b.parameter="delay"', "Name 'channel_delay', with entries"),
        ('unknowns.b.parameter="sigma"', 'Write sigma = "unknown" in its channel'),
        ('unknowns.b.parameter="camera_focal"', 'Add [observations.camera] of the kind "pinhole", with focal.'),
        ('material.mass="unknown"', "Give the number to start from, and seek it by [unknowns.NAME]"),
        ('time.dt="unknown"', 'time.dt: must be a number; found "unknown". Give a number.'),
        ('observations.channels.0.field="speed"', 'A speed is kind = "distance" of a velocity.'),
        ('observations.channels.0.kind="distance"', 'Name field = "marker", a place on a body or link.'),
        ("observations.begin=50.0", "must have samples since the start of the motion at 50; found times from 0 to 0.2"),
        ("observations.window=[5.0,6.0]", "must have samples in the window from 5 to 6"),
    ],
)
def test_what_cannot_be_unknown_names_what_can(scene: Path, override: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        simphys.load_scene(scene, (override,))
    assert words in str(caught.value)


def test_the_lines_that_are_named_work(scene: Path) -> None:
    lines = '[unknowns.late]\nparameter = "channel_delay"\ntied = true\nscale = 0.1\n'
    scene.write_text(SCENE + lines)
    assert simphys.load_scene(scene).objective().labels == ["length", "late"]
