"""`section.key=VALUE` on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from simphys.autograd.errors import InputError
from simphys.scenefile.overrides import apply_override, parse_override


def overridden(scene: dict[str, Any], text: str) -> dict[str, Any]:
    apply_override(scene, parse_override(text))
    return scene


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=5e3", 5e3),
        ("a=2", 2),
        ("a = true", True),
        ("a=[1, [2.5]]", [1, [2.5]]),
        ("a={b = 1}", {"b": 1}),
        ('a="5"', "5"),
        ("a='x=y'", "x=y"),
        ("a=inf", float("inf")),
        ("a=/x/y.txt", "/x/y.txt"),
        ("a=folder/name=1 #2.txt", "folder/name=1 #2.txt"),
        ("a=1.txt", "1.txt"),
        ("a=lbfgs", "lbfgs"),
        ("a=1\nb=2", "1\nb=2"),
    ],
)
def test_a_value_is_toml_or_else_a_bare_word(text: str, value: object) -> None:
    assert parse_override(text).value == value


def test_a_value_is_set_in_nested_tables_and_lists() -> None:
    scene = {"geometry": {"anchors": [{"stiffness": 1.0}, {"stiffness": 2.0}]}}
    assert overridden(scene, "geometry.anchors.1.stiffness=3") == {
        "geometry": {"anchors": [{"stiffness": 1.0}, {"stiffness": 3}]}
    }


def test_missing_tables_are_made_and_quoted_keys_understood() -> None:
    assert overridden({}, 'unknowns."a.b".start=3') == {"unknowns": {"a.b": {"start": 3}}}


def test_a_number_is_a_name_in_a_table() -> None:
    assert overridden({"unknowns": {"01": 1}}, "unknowns.01=2") == {"unknowns": {"01": 2}}


def test_the_key_as_it_turned_out_has_indices() -> None:
    assert apply_override({"a": [[1, 2]]}, parse_override("a.0.1=5")).key == ("a", 0, 1)


def test_the_number_of_steps_and_the_duration_replace_each_other() -> None:
    assert overridden({"time": {"dt": 1e-3, "duration": 2.0}}, "time.steps=5") == {"time": {"dt": 1e-3, "steps": 5}}
    assert overridden({"time": {"steps": 5}}, "time.duration=2.0") == {"time": {"duration": 2.0}}


@pytest.mark.parametrize("text", ["material.stiffness", "=3", "a..b=3", "a=", "a = "])
def test_what_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be KEY=VALUE") as caught:
        parse_override(text)
    assert caught.value.source == f"override '{text}'"
    assert "material.stiffness=5e3" in caught.value.remedy


@pytest.mark.parametrize("text", ["a=[1, 2", 'a="open', "a={b=}"])
def test_an_unfinished_value_is_not_taken_for_a_word(text: str) -> None:
    with pytest.raises(InputError, match="the value must be valid TOML") as caught:
        parse_override(text)
    assert caught.value.source == f"override '{text}'"


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("points.2=1", "points has 2 elements, counted from 0"),
        ("points.x=1", "points has 2 elements, counted from 0"),
        ("points.-1=1", "points has 2 elements, counted from 0"),
        ("dt.x=1", "dt must be a table or a list"),
        ("dt.x.y=1", "dt must be a table or a list"),
    ],
)
def test_a_key_that_leads_nowhere_is_refused(text: str, constraint: str) -> None:
    with pytest.raises(InputError) as caught:
        overridden({"points": [1, 2], "dt": 1e-3}, text)
    assert caught.value.source == f"override '{text}'"
    assert caught.value.constraint == constraint
    assert "as a whole" in caught.value.remedy
