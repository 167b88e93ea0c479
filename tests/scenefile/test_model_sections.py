"""Keys, checks, demands and arrays of a scene that follow from the declared fields of its model."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.scenefile import Config, ConfigError, Section, Simulator, fill_model, from_dict, scene_of, to_dict
from simphys.scenefile.section import Count, Positive
from simphys.scenefile.shared import FieldFileSection
from simphys.scenefile.sized import file_keys
from simphys.simulator import Model, Record, declare


@dataclass(frozen=True)
class Params(Record):
    mass: Tensor = declare("n", "kg", sign="positive", section="material")
    """Mass of each body."""
    drag: Tensor = declare("", "1/s", sign="not_negative", section="material.air_drag", standard=0.5)
    """Drag."""
    depth: Tensor = declare("*cells", "m", sign="positive", section="tank")
    """Depth of each cell."""
    ends: Tensor = declare("2", "m", section="walls.ends", standard=0.0)
    """Ends."""


@dataclass(frozen=True)
class State(Record):
    position: Tensor = declare("n, dim", "m", section="start")
    """Place."""
    velocity: Tensor = declare("n, dim", "m/s", section="start", standard=0.0)
    """Velocity."""


@dataclass(frozen=True)
class Bodies(Model):
    n: int
    dt: float
    Params, State = Params, State


class Tank(Section):
    """A tank of its own section: cells, and depth [m] up to 3."""

    cells: list[Count]
    depth: float | FieldFileSection = 1.0


@scene_of(Bodies, n="start.position", dim="start.position.0", cells="tank.cells")
class BodiesConfig(Config):
    """A scene of bodies."""

    tank: Tank

    def build_model(self) -> Bodies:
        return Bodies(2, self.time.dt)


def scene(**changed: Any) -> Any:
    return from_dict(
        {
            "simulator": {"name": f"{__name__}:BodiesConfig"},
            "time": {"dt": 0.1, "steps": 2},
            "material": {"mass": 2.0},
            "start": {"position": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]},
            "tank": {"cells": [2, 1]},
            **changed,
        }
    )


def test_every_field_gets_its_array() -> None:
    config = scene(material={"mass": [1.0, 2.0, 3.0], "air_drag": 0.1}, walls={"ends": [7.0, 8.0]})
    found = {name: values.tolist() for name, values in {**config.fields.params, **config.fields.state}.items()}
    assert found == {
        "mass": [1.0, 2.0, 3.0],
        "drag": 0.1,
        "depth": [[1.0], [1.0]],
        "ends": [7.0, 8.0],
        "position": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "velocity": [[0.0, 0.0]] * 3,
    }
    assert scene().fields.params["mass"].tolist() == [2.0] * 3 and scene().fields.params["drag"] == 0.5
    assert to_dict(from_dict(to_dict(config))) == to_dict(config)
    assert to_dict(pickle.loads(pickle.dumps(config))) == to_dict(config)


def test_sections_say_what_the_fields_are() -> None:
    material = BodiesConfig.model_fields["material"].annotation
    assert material is not None and material.__name__ == "MaterialSection"
    assert material.__doc__ == "mass [kg]: Mass of each body.\nair_drag [1/s]: Drag."
    assert BodiesConfig.__doc__ == "A scene of bodies." and BodiesConfig.__module__ == __name__


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"material": {"mass": -2.0}}, "material.mass: must be greater than 0; found -2"),
        (
            {"material": {"mass": [1.0, 2.0]}},
            "material.mass: must have 3 elements, one for each of start.position; found",
        ),
        ({"start": {"position": 1.0}}, "start.position: must be a list; found 1.0"),
        ({"start": {"position": []}}, "start.position: must be a list of 1 or more elements"),
        ({"start": {}}, "start.position: this key is required"),
        ({"material": {"mas": 2.0}}, "Did you mean 'mass'"),
        ({"material": {"mass": 2.0, "air_drag": -1.0}}, "material.air_drag: must be at least 0; found -1"),
        (
            {"start": {"position": [[1.0, 2.0], [3.0]]}},
            "start.position.1: must have 2 elements, one for each axis of start.position.0; found [3.0]",
        ),
        (
            {"values": {"wrong": {"parameter": "drag", "value": -1.0}}},
            "values.wrong.value: must be at least 0; found -1",
        ),
    ],
)
def test_wrong_values_are_told_by_their_keys(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        scene(**changed)
    assert message in str(error.value)


def test_a_section_must_hold_the_keys_of_its_fields() -> None:
    @dataclass(frozen=True)
    class Deep(Record):
        depth: Tensor = declare("", "m", section="tank")
        width: Tensor = declare("", "m", section="tank")

    class Basin(Section):
        depth: Positive

    class BasinConfig(Config):
        tank: Basin

        def build_model(self) -> Any:
            return None

    with pytest.raises(InputError, match=r"BasinConfig\.tank: a section holds the key width; found no such key"):
        scene_of(type("Basins", (Model,), {"Params": Deep, "State": Deep}))(BasinConfig)


def test_sizes_of_shapes_are_known() -> None:
    class Anywhere(Config):
        tank: Tank

        def build_model(self) -> Any:
            return None

    with pytest.raises(
        InputError, match=r"Anywhere: scene_of says where the size n of mass stands; .* n=\"section.key"
    ):
        scene_of(Bodies, cells="tank.cells")(Anywhere)


def test_a_config_without_a_model_builds_its_own_fields() -> None:
    class Empty(Config):
        def build_model(self) -> Any:
            return None

    with pytest.raises(InputError, match=r"no build_fields\. Define build_fields, or decorate the class by @scene_of"):
        Empty.model_construct().build_fields()


def test_files_of_cells_are_read_beside_the_scene() -> None:
    assert ("tank", "depth", "file") in file_keys(BodiesConfig)


@dataclass(frozen=True)
class RoomParams(Record):
    gain: Tensor = declare("*cells", "1", section="walls", standard=1.0, least=0, most=1)
    """Gain."""
    bias: Tensor = declare("2", "1", section="walls", only_if="biased")
    """Bias."""


@dataclass(frozen=True)
class RoomState(Record):
    level: Tensor = declare("*cells", "1", section="start", standard=0.0)
    """Level."""


@dataclass(frozen=True)
class Room(Model):
    cells: tuple[int, ...]
    spacing: float
    dt: float
    order: int
    ends: str
    biased: bool = False
    title: str = "a room"
    Params, State = RoomParams, RoomState

    def __post_init__(self) -> None:
        if self.order > 2:
            raise InputError("Room.order", "at most 2", self.order, "Take 2.")
        if self.ends == "open":
            raise InputError("Room.ends", "closed", self.ends, "Close them.")
        if self.spacing > 5:
            raise InputError("too wide a room", "at most 5", self.spacing, "Take 5.")


class RoomSimulator(Simulator):
    order: Count | None = None


class RoomGrid(Section):
    cells: list[Count]
    spacing: Positive = 1.0
    kind: str = "closed"
    title: str = "a grid"


@scene_of(Room, cells="grid.cells")
class RoomConfig(Config):
    KEYS = {"ends": ("grid", "kind")}
    simulator: RoomSimulator
    grid: RoomGrid

    def build_model(self) -> Room:
        return fill_model(self, Room, ends=self.grid.kind, order=self.simulator.order or 1)


def room(**changed: Any) -> Any:
    simulator = {"name": f"{__name__}:RoomConfig", **changed.pop("simulator", {})}
    return from_dict({"simulator": simulator, "time": {"dt": 0.1, "steps": 2}, "grid": {"cells": [2, 3]}, **changed})


def test_models_are_made_of_sizes_and_keys() -> None:
    assert room(simulator={"order": 2}).build_model() == Room((2, 3), 1.0, 0.1, 2, "closed", title="a grid")
    found = room(walls={"bias": [1.0, 2.0]}).fields
    assert found.params["bias"].tolist() == [1.0, 2.0] and found.state["level"].shape == (2, 3)
    assert room().fields.params["bias"].shape == (0,)
    assert room().SIZES == ((("grid", "cells"), 16),)


def test_models_need_all_their_fields() -> None:
    config = room()
    with pytest.raises(
        InputError, match=r"RoomConfig\.build_model: all fields of Room are given; found no order, ends\."
    ):
        fill_model(config, Room)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"simulator": {"order": 3}}, "scene: simulator.order: at most 2; found 3. Take 2."),
        ({"grid": {"cells": [2, 3], "kind": "open"}}, "scene: grid.kind: closed; found open. Close them."),
        ({"grid": {"cells": [2, 3], "spacing": 6.0}}, "too wide a room: at most 5; found 6.0. Take 5."),
        ({"walls": {"gain": 1.5}}, "scene: walls.gain: must be at most 1; found 1.5."),
        ({"walls": {"gain": -0.5}}, "scene: walls.gain: must be at least 0; found -0.5."),
        ({"walls": {"bias": [1.0]}}, "scene: walls.bias: must be a list of 2 or more elements"),
    ],
)
def test_what_a_model_refuses_is_told_at_the_key_of_its_field(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        room(**changed)
    assert str(caught.value).startswith(message)


def test_a_config_without_a_model_builds_its_own() -> None:
    with pytest.raises(InputError, match=r"no build_model\. Define build_model, or decorate the class by @scene_of"):
        Config.model_construct().build_model()
