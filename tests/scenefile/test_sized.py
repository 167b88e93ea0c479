"""Marks on the types of keys: lists, indices and sides are checked against the sizes of a scene, wherever they are."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from simphys.scenefile.section import EACH, Body, Distinct, Index, IndexOf, Length, NotZero, Section
from simphys.scenefile.shared import FieldFileSection, Side
from simphys.scenefile.sized import check_marks, file_keys, marked_keys, named_keys

Vector = Annotated[list[float], Length("dim")]


class Link(Section):
    ends: Annotated[list[Annotated[Index, IndexOf("bodies")]], Distinct()]
    axis: Annotated[Vector, NotZero()] | None = None


class World(Section):
    title: str = ""
    position: Annotated[list[Vector], Length("bodies")] = [[0.0, 1.0], [2.0, 3.0]]
    mass: float | Annotated[list[float], Length("bodies")] = 1.0
    names: dict[str, Annotated[Index, IndexOf("bodies")]] = {}
    sides: str | dict[Side, float] = "open"
    walls: list[Side] = []
    links: list[Link] = []
    hidden: Annotated[list[float], Length("units")] = []


def problems(**given: Any) -> list[str]:
    world = World.model_validate(given)
    places = {"dim": ("grid", "cells"), "bodies": ("world", "position")}
    found = check_marks(World, world, ("world",), {"dim": 2, "bodies": 2}, places)
    return [f"{'.'.join(map(str, each.key))}: {each.constraint}" for each in found]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"mass": [1.0, 2.0], "names": {"cart": 1}, "sides": {"y+": 1.0}, "links": [{"ends": [0, 1]}]}, []),
        ({"hidden": [1.0]}, []),
        ({"mass": [1.0]}, ["world.mass: must have 2 elements, one for each of world.position"]),
        (
            {"position": [[0.0, 1.0], [2.0]]},
            ["world.position.1: must have 2 elements, one for each axis of grid.cells"],
        ),
        ({"names": {"cart": 2}}, ["world.names.cart: must be the index of one of 2 bodies, counted from 0"]),
        ({"sides": {"z-": 1.0}}, ["world.sides.z-: must be a side of a 2-D grid"]),
        ({"walls": ["x-", "z+"]}, ["world.walls.1: must be a side of a 2-D grid"]),
        (
            {"links": [{"ends": [0, 1]}, {"ends": [1, 1]}]},
            ["world.links.1.ends: its numbers must differ from each other"],
        ),
        (
            {"links": [{"ends": [0, 3], "axis": [0.0, 0.0]}]},
            [
                "world.links.0.ends.1: must be the index of one of 2 bodies, counted from 0",
                "world.links.0.axis: must be a direction",
            ],
        ),
    ],
)
def test_marked_keys_are_checked_wherever_they_are(given: dict[str, Any], expected: list[str]) -> None:
    assert problems(**given) == expected


def test_sizes_without_a_key_name_what_they_count() -> None:
    (found,) = check_marks(Vector, [1.0], ("goal",), {"dim": 2}, {})
    assert found.constraint == "must have 2 elements, one for each axis"
    (found,) = check_marks(Annotated[list[float], Length("nodes")], [1.0], ("mass",), {"nodes": 2}, {})
    assert found.constraint == "must have 2 elements, one for each node"


def test_keys_of_files_and_names_follow_from_their_types() -> None:
    class Pin(Section):
        at: Annotated[Body, IndexOf("bodies")]
        pair: list[Annotated[Body, IndexOf("bodies")]] = []
        field: float | FieldFileSection = 0.0

    class Scene(Section):
        pins: dict[str, list[Pin]] = {}

    assert named_keys(Scene) == (("pins", EACH, EACH, "at"), ("pins", EACH, EACH, "pair", EACH))
    assert file_keys(Scene) == (("pins", EACH, EACH, "field", "file"),)


def test_keys_without_marks_are_left_out() -> None:
    assert "title" not in marked_keys(World) and "mass" in marked_keys(World)
