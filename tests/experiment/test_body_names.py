"""Bodies by the names that a scene gives them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.experiment.scene import load_scene
from simphys.scenefile.body_names import name_bodies
from simphys.scenefile.errors import ConfigError

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def test_a_rigid_body_and_the_particles_of_pieces_are_found_by_name() -> None:
    bodies = load_scene(SCENES / "rigid" / "walker_2d.toml").bodies
    assert bodies is not None
    assert bodies["trunk"].tolist() == [0] and bodies["right shank"].tolist() == [4]
    with pytest.raises(InputError, match="Write 'trunk'"):
        bodies["trunc"]
    scene = load_scene(SCENES / "mpm" / "crawler.toml")
    assert scene.bodies is not None and scene.bodies.group is not None
    legs = scene.bodies["left leg"]
    assert np.array_equal(legs, np.flatnonzero(np.isin(scene.bodies.group, [1, 2])))
    assert (scene.state.position.data[legs, 0] < 0.2).all()


def test_a_chain_has_links_and_a_spherical_pendulum_a_node() -> None:
    assert name_bodies({"name": "pendulum"}).of(1) == "link 1"
    assert name_bodies({"name": "pendulum", "kind": "spherical"}).of(0) == "node 0"
    swing = load_scene(SCENES / "pendulum" / "double.toml")
    assert name_bodies(swing.config.simulator).several == "links"


def test_a_name_is_that_of_one_rigid_body_only() -> None:
    with pytest.raises(ConfigError, match="one body only"):
        load_scene(SCENES / "rigid" / "two_balls.toml", ["bodies.1.name=left ball"])


def test_bodies_describe_themselves_in_few_lines() -> None:
    walker = load_scene(SCENES / "rigid" / "walker_2d.toml").bodies
    assert repr(walker).splitlines()[:2] == ["Bodies: 5", "  trunk         body 0"]
    assert walker is not None and "<td" in walker._repr_html_() and "right shank" in walker._repr_html_()
    crawler = repr(load_scene(SCENES / "mpm" / "crawler.toml").bodies)
    assert "left leg" in crawler and "array" not in crawler and len(crawler.splitlines()) < 12
