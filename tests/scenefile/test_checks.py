"""What must hold between sections, and between them and the simulator's fields."""

from __future__ import annotations

from typing import Any

import pytest

from simphys.scenefile import ConfigError, from_dict


def scene(**sections: Any) -> dict[str, Any]:
    return {
        "simulator": {"name": "mass_spring"},
        "time": {"dt": 1e-3, "steps": 10},
        "geometry": {"position": [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]},
        "unknowns": {"start": {"parameter": "velocity", "entries": [0]}},
        **sections,
    }


def term(kind: str = "final_state", **keys: Any) -> dict[str, Any]:
    return {"loss": {"terms": [{"kind": kind, **keys}]}}


def channel(**keys: Any) -> dict[str, Any]:
    return {"observations": {"file": "x.txt", "channels": [{"column": 1, "field": "position", "node": 0, **keys}]}}


@pytest.mark.parametrize(
    "sections",
    [
        {"time": {"dt": 1e-3, "duration": 1.0}},
        {"time": {"dt": 1e-3}, **channel(axis=1)},
        *[{"runtime": {"memory": memory}} for memory in ("all", "2GB", 0.5, 500_000_000)],
        {"loss": {"kind": "huber", "delta": 1.5}},
        term(target=[1.0, 2.0]),
        term(target=[[1.0, 2.0]] * 3),
        term(target=[[1.0, 2.0]], nodes=[2], field="velocity"),
        term(target_offset=[1.0, 2.0]),
        term(target_offset=[1.0, 2.0], field="velocity"),
        {"loss": {"terms": [{"kind": "running_sum", "target": [0.0, 0.0], "field": "velocity"}]}},
        {"loss": {"terms": [{"kind": "regularization", "unknown": "start", "weight": 0.1}]}},
        term(target=1.0, axis=1),
        term(target=[1.0, 2.0, 3.0], axis=1),
        term(target_offset=1.0, axis=0),
        term(target=[[1.0, 2.0]] * 2, nodes={"first": 1, "last": 2}),
        term(kind="final_mean", target=[1.0, 2.0], nodes={"first": 0, "last": 2}),
        term(kind="final_mean", target=1.0, axis=0, nodes=[1], field="velocity"),
        term(kind="running_sum", target=1.0, axis=0),
    ],
)
def test_sections_that_fit_are_accepted(sections: Any) -> None:
    from_dict(scene(**sections))


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"time": {"dt": 1e-3}}, "time: needs steps or duration where there are no observations; found nothing. Add"),
        (
            {"time": {"dt": 1e-3, "steps": 1, "duration": 2.0}},
            'time: needs only one of steps and duration; found {"steps": 1, "duration": 2.0}. Drop one.',
        ),
        (
            {"runtime": {"memory": "2 GX"}},
            'runtime.memory: the budget is a size with a unit; found "2 GX". Write "all", a size such as "2GB"',
        ),
        ({"runtime": {"memory": -1}}, "runtime.memory: the budget is a size; found -1. Write "),
        ({"loss": {"kind": "huber"}}, "loss: the huber loss needs delta; found nothing. Add delta = 1.5"),
        ({"loss": {"delta": 2.0}}, "loss.delta: belongs to huber, soft_l1, cauchy; found 2.0. Use kind"),
        (term(), "loss.terms.0: needs one of target and target_offset; found none. "),
        (term(target=[1.0, 1.0], target_offset=[1.0, 1.0]), "loss.terms.0: needs one of target and target_offset; "),
        (term(target=[1.0]), "loss.terms.0.target: must be a vector of 2 numbers or 3 of them; found [1.0]. "),
        (term(target=[[1.0, 1.0]]), "loss.terms.0.target: must be a vector of 2 numbers or 3 of them; "),
        (term(target_offset=[1.0]), "loss.terms.0.target_offset: must be a vector of 2 numbers; found [1.0]. "),
        (
            term(target=[[1.0, 1.0]], nodes=[3]),
            "loss.terms.0.nodes.0: must be the index of one of 3 nodes, counted from",
        ),
        (
            term(target=[1.0, 1.0], axis=2),
            "loss.terms.0.axis: must be the index of one of 2 axes, counted from 0; found 2",
        ),
        (
            term(target=[1.0, 1.0], axis=0),
            "loss.terms.0.target: must be a number or [3] of them; found [1.0, 1.0]. Give a number, or one for",
        ),
        (
            term(target_offset=[1.0, 1.0], axis=0),
            "loss.terms.0.target_offset: must be a number; found [1.0, 1.0]. Give a",
        ),
        (
            term(kind="final_mean", target=1.0),
            "loss.terms.0.target: must be a vector of 2 numbers; found 1.0. Give a number for each axis.",
        ),
        (
            term(kind="final_mean", target=[1.0, 2.0], axis=1),
            "loss.terms.0.target: must be a number; found [1.0, 2.0]. ",
        ),
        (term(kind="final_mean"), "loss.terms.0.target: this key is required; found nothing. "),
        (
            term(target=[1.0, 1.0], nodes={"first": 1, "last": 3}),
            "loss.terms.0.nodes.last: must be the index of one of 3 nodes, counted from 0; found 3. ",
        ),
        (
            term(target=[1.0, 1.0], nodes={"first": 2, "last": 1}),
            "loss.terms.0.nodes.first: must not be beyond last = 1; found 2. Exchange them.",
        ),
        (
            term(target=[1.0, 1.0], nodes={"first": 2}),
            "loss.terms.0.nodes.last: this key is required; found nothing. Add loss.terms.0.nodes.last.",
        ),
        (
            term(target=[1.0, 1.0], nodes={"first": -1, "last": 1}),
            "loss.terms.0.nodes.first: must be at least 0; found -1. ",
        ),
        (
            term(target=[1.0, 1.0], nodes={"first": 0, "last": 1, "step": 2}),
            "loss.terms.0.nodes.step: unknown key; found 2. Known: first, last.",
        ),
        (term(target=[1.0, 1.0], nodes=3), "loss.terms.0.nodes: must be a list or a table; found 3. "),
        (term(target=[1.0, 1.0], field="positon"), "loss.terms.0.field: must be a component of the state; found"),
        (
            {"loss": {"terms": [{"kind": "regularization", "unknown": "strat"}]}},
            "loss.terms.0.unknown: must be the label of an unknown; found \"strat\". Did you mean 'start'?",
        ),
        (channel(field="speed"), 'observations.channels.0.field: must be a component of the state; found "speed". '),
        (
            channel(node=3),
            "observations.channels.0.node: must be the index of one of 3 nodes, counted from 0; found 3. ",
        ),
        (
            channel(axis=2),
            "observations.channels.0.axis: must be the index of one of 2 axes, counted from 0; found 2. ",
        ),
    ],
)
def test_sections_that_do_not_fit_are_told(sections: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict(scene(**sections))
    (error,) = caught.value.errors
    assert str(error).startswith(f"scene: {told}")


@pytest.mark.parametrize(
    ("time", "count"),
    [
        ({"dt": 1e-3, "steps": 7}, 7),
        ({"dt": 1e-3, "duration": 29.0}, 29000),
        ({"dt": 0.1, "duration": 0.3}, 3),
        ({"dt": 0.1, "duration": 0.31}, 4),
        ({"dt": 1.0, "duration": 0.2}, 1),
    ],
)
def test_the_steps_reach_the_end_of_the_duration(time: Any, count: int) -> None:
    assert from_dict(scene(time=time)).time.step_count() == count


def test_without_steps_and_duration_the_last_observation_is_the_end() -> None:
    config = from_dict(scene(time={"dt": 1e-2}, **channel()))
    assert config.time.step_count(last_observation=0.995) == 100
