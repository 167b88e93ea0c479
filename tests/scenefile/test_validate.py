"""Types, ranges and names of the keys of the generic sections."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simphys.scenefile import ConfigError, from_dict, to_dict


def scene(**sections: Any) -> dict[str, Any]:
    return {
        "simulator": {"name": "mass_spring"},
        "time": {"dt": 1e-3, "steps": 10},
        "geometry": {"position": [[0.0, 1.0], [1.0, 1.0]]},
        **sections,
    }


def problems(**sections: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        from_dict(scene(**sections))
    return [str(error) for error in caught.value.errors]


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"materal": {}}, "materal: unknown section; found {}. Did you mean 'material'?"),
        ({"zzz": 1}, "zzz: unknown section; found 1. Known: title, simulator, units, runtime,"),
        ({"runtime": {"arhc": "cpu"}}, "runtime.arhc: unknown key; found \"cpu\". Did you mean 'arch'?"),
        (
            {"runtime": {"x": 1}},
            "runtime.x: unknown key; found 1. "
            "Known: arch, compiler, precision, threads, seed, memory, deterministic, verify.",
        ),
        (
            {"runtime": {"iterations": 5}},
            "runtime.iterations: unknown key; found 5. Known: arch, compiler, precision, threads, seed, memory, "
            "deterministic, verify. 'iterations' is a key of optimizer",
        ),
        ({"time": {"dt": "x", "steps": 1}}, 'time.dt: must be a number; found "x". Give a value that is a number.'),
        (
            {"runtime": {"arch": "cudda"}},
            "runtime.arch: must be one of 'cpu', 'gpu', 'cuda', 'vulkan' or 'metal'; found \"cudda\". "
            "Did you mean 'cuda'?",
        ),
        ({"runtime": {"threads": 0}}, "runtime.threads: must be at least 1; found 0. "),
        ({"runtime": {"threads": 1.5}}, "runtime.threads: must be a whole number or one of 'auto'; found 1.5. "),
        ({"runtime": {"threads": True}}, "runtime.threads: must be a whole number or one of 'auto'; found true. "),
        (
            {"runtime": {"threads": "atuo"}},
            "runtime.threads: must be a whole number or one of 'auto'; found \"atuo\". Did you mean 'auto'?",
        ),
        ({"runtime": 3}, "runtime: must be a table; found 3. "),
        ({"title": 3}, "title: must be a string; found 3. Write strings in quotes."),
        ({"time": {"dt": float("nan"), "steps": 1}}, "time.dt: must be a finite number; found NaN. "),
        ({"time": {"dt": "1", "steps": 1}}, 'time.dt: must be a number; found "1". Write numbers without quotes.'),
        ({"time": {"steps": 1}}, "time.dt: this key is required; found nothing. Add time.dt."),
        ({"unknowns": {"k": {"parameter": "mass", "start": True}}}, "unknowns.k.start: must be a number or a list or"),
        (
            {"unknowns": {"k": {"parameter": "mass", "start": [1, "x"]}}},
            "unknowns.k.start.1: must be a number or a list",
        ),
        ({"unknowns": {"k": {"parameter": "mass", "bound": []}}}, "unknowns.k.bound: unknown key; found []. Did you"),
        ({"unknowns": {"k": {"parameter": "mass", "bounds": [1]}}}, "unknowns.k.bounds: must be a list of 2 or more"),
        (
            {"unknowns": {"k": {"parameter": "mass", "tied": 1}}},
            "unknowns.k.tied: must be true, false or 'rows'; found 1. ",
        ),
        (
            {"loss": {"terms": [{"kind": "final_stat"}]}},
            "loss.terms.0: must be of one of the kinds 'final_state', 'final_mean', 'final_density', 'running_sum', "
            "'regularization'; "
            'found {"kind": "final_stat"}. Did you mean \'final_state\'?',
        ),
        ({"loss": {"terms": [{}]}}, "loss.terms.0: must be of a kind: give the key 'kind'; found {}. "),
        (
            {"loss": {"terms": [{"kind": "regularization", "unknown": "k", "targt": 1}]}},
            "loss.terms.0.targt: unknown key; found 1. Known: kind, unknown, towards, weight.",
        ),
        (
            {"observations": {"file": "x", "channels": [{"column": -1, "field": "position", "node": 0}]}},
            "observations.channels.0.column: must be at least 0",
        ),
        ({"observations": {"file": "x", "channels": []}}, "observations.channels: must be a list of 1 or more"),
    ],
)
def test_a_wrong_value_is_told_with_its_key_what_is_required_and_a_remedy(sections: Any, told: str) -> None:
    (line,) = problems(**sections)
    assert line.startswith(f"scene: {told}")


def test_one_invalid_section_does_not_hide_the_problems_of_others() -> None:
    lines = problems(
        runtime={"threads": -1},
        material={"mass": [1.0]},
        unknowns={"k": {"parameter": "masss"}},
        loss={"kind": "huber"},
    )
    assert [line.split(": ")[1] for line in lines] == ["runtime.threads", "loss", "material.mass"]
    assert "unknowns.k.parameter" in problems(runtime={"threads": -1}, unknowns={"k": {"parameter": "masss"}})[1]


def test_an_integer_is_a_number() -> None:
    assert from_dict(scene(time={"dt": 1, "duration": 2})).time.dt == 1.0


FULL = scene(
    simulator={"name": "mass_spring", "integrator": "semi_implicit_euler"},
    geometry={
        "position": [[0.0, 1.0], [1.0, 1.0]],
        "springs": [[0, 1]],
        "pinned": [0],
        "anchors": [{"node": 1, "point": [2.0, 1.0], "stiffness": 3.0}],
    },
    material={"stiffness": [1.0], "rest_length": 0.5, "mass": 2.0},
    environment={"gravity": [0.0, -1.0], "ground": {"height": -1.0}},
    state={"velocity": [[0.0, 0.0], [1.0, 0.0]]},
    unknowns={"k": {"parameter": "stiffness", "entries": [1], "start": 2.0, "bounds": [1.0, 5.0], "transform": "log"}},
    loss={"terms": [{"kind": "final_state", "target": [0.0, 0.0], "nodes": [0]}]},
    observations={"file": "x.txt", "time": "t", "channels": [{"column": 1, "field": "position", "node": 0}]},
)
ANYTHING = st.recursive(
    st.sampled_from([None, True, "", "x", "position", "inf", 0, 1, -1, 10**30, 0.5, float("nan"), float("inf")]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["kind", "node", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a scene with every key or index in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    return [found for key, item in items for found in ((value, key), *places(item))]


@given(place=st.integers(0, len(places(FULL)) - 1), value=ANYTHING)
@example(place=0, value=3)
def test_whatever_stands_in_a_scene_it_is_accepted_or_refused_with_its_problems(place: int, value: object) -> None:
    mutated = deepcopy(FULL)
    container, key = places(mutated)[place]
    container[key] = value
    try:
        accepted = from_dict(mutated)
    except ConfigError as error:
        assert error.errors and all(each.remedy for each in error.errors)
    else:
        assert from_dict(to_dict(accepted)) == accepted
