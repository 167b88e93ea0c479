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
    assert name_bodies({"simulator": {"name": "pendulum"}}).of(1) == "link 1"
    assert name_bodies({"simulator": {"name": "pendulum", "kind": "spherical"}}).of(0) == "node 0"
    swing = load_scene(SCENES / "pendulum" / "double.toml")
    assert name_bodies(swing.config).several == "links"


def test_a_name_is_that_of_one_rigid_body_only() -> None:
    with pytest.raises(ConfigError, match="one body only"):
        load_scene(SCENES / "rigid" / "two_balls.toml", ["bodies.1.name=left ball"])


def test_bodies_describe_themselves_in_few_lines() -> None:
    walker = load_scene(SCENES / "rigid" / "walker_2d.toml").bodies
    assert repr(walker).splitlines()[:2] == ["Bodies: 5", "  trunk         body 0"]
    assert walker is not None and "<td" in walker._repr_html_() and "right shank" in walker._repr_html_()
    crawler = repr(load_scene(SCENES / "mpm" / "crawler.toml").bodies)
    assert "left leg" in crawler and "array" not in crawler and len(crawler.splitlines()) < 12


def test_nodes_of_springs_have_the_names_of_their_scene() -> None:
    names = "geometry.names={right=0, left=1}"
    scene = load_scene(SCENES / "mass_spring" / "two_gliders.toml", [names, "geometry.anchors.1.node=left"])
    assert scene.bodies is not None
    assert scene.bodies["left"].tolist() == [1] and scene.bodies.names == ("right", "left", None, None)
    assert scene.config.geometry.anchors[1].node == 1
    alone = load_scene(SCENES / "mass_spring" / "air_track.toml", ["geometry.names={glider=0}"]).bodies
    assert alone is not None and alone["glider"].tolist() == [0]  # and not the anchor


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("{right=0, left=2}", r"geometry\.names\.left: must be the index of one of 2 nodes"),
        ("{right=0, left=0}", r"geometry\.names\.left: a node has one name; found 0\. Node 0 is 'right' already"),
    ],
)
def test_a_name_is_that_of_one_node(names: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_scene(SCENES / "mass_spring" / "two_gliders.toml", [f"geometry.names={names}"])


def test_a_channel_a_loss_and_a_joint_may_name_bodies() -> None:
    balls = load_scene(
        SCENES / "rigid" / "two_balls.toml", ["loss.terms.0.nodes=['right ball']", "loss.terms.0.target=1.4"]
    )
    assert balls.config.loss.terms[0].nodes == [1]
    arm = load_scene(SCENES / "rigid" / "filmed_arm.toml").config
    assert [channel.node for channel in arm.observations.channels] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [(joint.a, joint.b) for joint in arm.joints] == [(0, None), (1, 0)]


def test_an_unknown_name_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    text = (SCENES / "rigid" / "filmed_arm.toml").read_text().replace('node = "lower"', 'node = "lover"', 1)
    (tmp_path / "scene.toml").write_text(text)
    line = 1 + text[: text.index("lover")].count("\n")
    with pytest.raises(ConfigError) as caught:
        load_scene(tmp_path / "scene.toml")
    (error,) = caught.value.errors
    assert error.source == f"{tmp_path / 'scene.toml'}:{line}: observations.channels.4.node"
    assert str(error).endswith(
        ": must be the name or the number of a body; found \"lover\". Did you mean 'lower'? The names are upper, lower."
    )


def test_where_bodies_have_no_names_the_key_that_gives_them_is_told() -> None:
    with pytest.raises(ConfigError, match=r"found \"cart\"\. No node has a name: .*, or names in geometry\.names\."):
        load_scene(SCENES / "mass_spring" / "air_track.toml", ["observations.channels.0.node=cart"])
    with pytest.raises(ConfigError, match=r"No charge has a name: give its number, from 0 on\.$"):
        load_scene(
            SCENES / "charges" / "find_charges.toml", ["loss.terms=[{kind='final_state', nodes=['a'], target=0.0}]"]
        )
