"""A scene that is made of another one of its family is the one that is loaded as a whole, bit by bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simphys.autograd import InputError
from simphys.experiment import family
from simphys.experiment.batches import make_objectives, shape_key, share_model
from simphys.experiment.family import Family
from simphys.experiment.scene import Scene, load_scene
from simphys.scenefile import to_dict
from simphys.simulators.mass_spring.scene import MassSpringConfig

SCENE = """\
simulator.name = "mass_spring"
time = { dt = 1e-3, steps = 10 }
[geometry]
position = [[0.0, 0.5], [0.1, 0.5]]
springs = [[0, 1]]
anchors = [{ node = 0, point = [0.0, 0.6], stiffness = 4.0, damping = 0.1 }]
[material]
stiffness = 50.0
damping = 0.2
mass = 0.5
drag = 0.3
[environment]
ground = { height = 0.1, stiffness = 200.0, friction = 0.5 }
[unknowns.hold]
parameter = "stiffness"
entries = [1]
[[loss.terms]]
kind = "final_state"
nodes = [1]
target = [0.2, 0.5]
"""
KEYS = [".".join(map(str, key)).replace("*", "0") for key in MassSpringConfig.PARAMETERS]


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "scene.toml").write_text(SCENE)
    return str(tmp_path / "scene.toml")


def assert_same(one: Scene, other: Scene) -> None:
    assert to_dict(one.config) == to_dict(other.config) and one.steps == other.steps
    for part in ("params", "state"):
        mine, its = getattr(one, part).arrays(), getattr(other, part).arrays()
        assert all(
            [mine[name].tobytes() == its[name].tobytes() and mine[name].dtype == its[name].dtype for name in its]
        )
    assert shape_key(share_model(one)) == shape_key(share_model(other))
    assert one.objective().start.tobytes() == other.objective().start.tobytes()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("precision", ["f64", "f32"])
def test_another_number_makes_the_scene_that_is_loaded(
    path: str, key: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = [f"runtime.precision={precision}"]
    made = Family(path, [*shared, f"{key}=0.011"])
    made.load([*shared, f"{key}=0.012"])  # here it is seen what the key sets
    monkeypatch.setattr(family, "load_scene", None)
    third = made.load([*shared, f"{key}=0.013"])
    still = made.load([*shared, f"{key}=0"]) if "mass" not in key else third
    monkeypatch.undo()
    assert_same(third, load_scene(path, [*shared, f"{key}=0.013"]))
    assert_same(still, load_scene(path, [*shared, f"{key}={0 if 'mass' not in key else 0.013}"]))


def test_two_keys_change_at_once_and_an_unknown_starts_at_its_number(path: str) -> None:
    def given(anchor: float, drag: float) -> list[str]:
        return [f"geometry.anchors.0.stiffness={anchor}", f"material.drag={drag}"]

    made = Family(path, given(3.0, 0.1))
    for values in ((4.0, 0.2), (5.0, 0.1), (6.0, 0.4)):
        assert_same(made.load(given(*values)), load_scene(path, given(*values)))
    one, same, other = [made.load(given(*values)) for values in ((3.0, 0.1), (3.0, 0.5), (7.0, 0.1))]
    objectives = make_objectives([one, same, other])
    assert objectives[1].unknowns is objectives[0].unknowns and objectives[2].unknowns is not objectives[0].unknowns
    np.testing.assert_array_equal(objectives[2].unknowns.natural(objectives[2].start), [7.0])


def test_a_number_that_values_replace_changes_nothing(path: str) -> None:
    text = '\n[values.hold]\nparameter = "stiffness"\nvalue = 9.0\n'
    Path(path).write_text(SCENE + text)
    made = Family(path, ["material.stiffness=10"])
    for number in (20, 30):
        assert_same(made.load([f"material.stiffness={number}"]), load_scene(path, [f"material.stiffness={number}"]))


@pytest.mark.parametrize(
    "override",
    [
        "material.drag=-1",
        "material.drag=[0.1]",
        "material.stiffness=1e12",
        "time.steps=20",
        "material={stiffness = 2.0}",
    ],
)
def test_what_is_no_such_number_is_loaded_as_a_whole(path: str, override: str) -> None:
    key = override.partition("=")[0]
    first = {"time.steps": "10", "material": "{stiffness = 1.0}"}.get(key, "0.1")
    made = Family(path, [f"{key}={first}"])
    try:
        expected = load_scene(path, [override])
    except InputError as error:
        for _ in range(2):
            with pytest.raises(type(error)) as raised:
                made.load([override])
            assert str(raised.value) == str(error)
    else:
        assert_same(made.load([override]), expected)
