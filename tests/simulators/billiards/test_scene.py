"""The sections of a billiards scene become arrays, and each problem is reported with its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import InputError
from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.billiards import Billiards

TABLE = {"lower": [0.0, 0.0], "upper": [2.0, 1.0]}


def sections(**changed: Any) -> dict[str, Any]:
    """A scene of two balls; its runtime section is that of this process."""
    return {
        "simulator": {"name": "billiards"},
        "time": {"dt": 0.01, "steps": 5},
        "geometry": {"position": [[0.5, 0.5], [1.0, 0.25]]},
        "material": {"radius": 0.1},
        "table": TABLE,
        **changed,
    }


def term(**changed: Any) -> dict[str, Any]:
    return {"loss": {"terms": [{"kind": "final_state", "nodes": [1], "target": [1.5, 0.5], **changed}]}}


def test_defaults_describe_resting_balls_that_lose_nothing() -> None:
    scene = build_scene(from_dict(sections()))
    assert scene.model == Billiards(2, 0.01, cushions=True)
    params = {name: value.tolist() for name, value in scene.params.arrays().items()}
    assert params == {
        "radius": [0.1, 0.1],
        "mass": [1.0, 1.0],
        "restitution": 1.0,
        "cushion_restitution": 1.0,
        "deceleration": 0.0,
        **TABLE,
    }
    assert scene.state.position.data.tolist() == [[0.5, 0.5], [1.0, 0.25]]
    assert not scene.state.velocity.data.any()
    assert scene.bodies is not None and scene.bodies.radius is not None and scene.bodies.radius.tolist() == [0.1, 0.1]


def test_all_given_values_arrive() -> None:
    made = sections(
        material={"radius": [0.1, 0.05], "mass": [2.0, 4.0], "restitution": 0.9},
        table={"restitution": 0.5, "deceleration": 0.2},
        state={"velocity": [[1.0, 2.0], [3.0, 4.0]]},
    )
    scene = build_scene(from_dict(made))
    assert scene.model == Billiards(2, 0.01, cushions=False)
    params = {name: value.tolist() for name, value in scene.params.arrays().items()}
    assert params == {
        "radius": [0.1, 0.05],
        "mass": [2.0, 4.0],
        "restitution": 0.9,
        "cushion_restitution": 0.5,
        "deceleration": 0.2,
        "lower": [],
        "upper": [],
    }
    assert scene.state.velocity.data.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("changed", "where", "message"),
    [
        (
            {"geometry": {"position": [[0.5, 0.5], [0.5, 0.65]]}},
            "geometry.position.1",
            "balls 0 and 1, which overlap by 0.05:",
        ),
        (
            {"geometry": {"position": [[0.5, 0.5], [1.95, 0.5]]}},
            "geometry.position.1",
            "ball 1 at .* 0.05 too far out",
        ),
        ({"geometry": {"position": [[0.5, 0.5, 0.0], [1.0, 0.2]]}}, "geometry.position.0", "at most 2"),
        ({"material": {"radius": 0.1, "mass": 0.0}}, "material.mass", "greater than 0"),
        ({"material": {"radius": 0.1, "mass": [1.0, 0.0]}}, "material.mass.1", "greater than 0"),
        ({"material": {"radius": [0.1] * 3}}, "material.radius", "2 elements"),
        ({"material": {"radius": 0.1, "restitution": 1.2}}, "material.restitution", "at most 1"),
        ({"material": {"radius": 0.1, "restitution": -0.2}}, "material.restitution", "at least 0"),
        ({"table": {**TABLE, "restitution": 1.2}}, "table.restitution", "at most 1"),
        ({"table": {**TABLE, "deceleration": -0.1}}, "table.deceleration", "at least 0"),
        ({"table": {"lower": [0.0, 0.0]}}, "table", "two corners"),
        ({"table": {"lower": [0.0, 1.0], "upper": [2.0, 0.0]}}, "table.upper", "exceed lower"),
        ({"state": {"velocity": [[0.0, 0.0]]}}, "state.velocity", "2 elements"),
        (term(target=[1.95, 0.5]), "loss.terms.0.target", "unreachable target.* from .0.1, 0.1. to .1.9, 0.9.;"),
        (term(target=0.95, axis=1), "loss.terms.0.target", "unreachable target.* from 0.1 to 0.9"),
        (term(kind="final_mean", nodes=[0, 1], target=[0.0, 0.5]), "loss.terms.0.target", "unreachable target"),
        (term(kind="running_sum", target=[1.0, 2.0]), "loss.terms.0.target", "unreachable target"),
        (
            term(nodes={"first": 0, "last": 1}, target=[[1.0, 0.5], [1.0, 3.0]]),
            "loss.terms.0.target",
            "unreachable target",
        ),
    ],
)
def test_mistakes_are_reported_with_their_key(changed: dict[str, Any], where: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        from_dict(sections(**changed))
    assert where in str(raised.value)
    assert len(raised.value.errors) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"geometry": {"position": [[0.5, 0.5], [0.5, 0.7]]}},
        {"geometry": {"position": [[0.1, 0.1], [1.9, 0.9]]}},
        term(target=[1.9, 0.9]),
        term(field="velocity", target=[9.0, 9.0]),
        {"table": {}, **term(target=[9.0, 9.0])},
    ],
    ids=["touching", "at cushions", "in the corner", "a velocity", "open table"],
)
def test_what_just_fits_is_no_problem(changed: dict[str, Any]) -> None:
    from_dict(sections(**changed))


def test_other_problems_of_a_target_are_reported_once() -> None:
    for changed in (term(nodes=[7]), term(target=[1.0, 2.0, 3.0])):
        with pytest.raises(ConfigError) as raised:
            from_dict(sections(**changed))
        assert len(raised.value.errors) == 1 and "unreachable" not in str(raised.value)


def test_an_unknown_start_that_overlaps_is_reported_before_the_search() -> None:
    unknown = {"place": {"parameter": "position", "entries": [0], "start": [1.0, 0.4]}}
    scene = build_scene(from_dict(sections(unknowns=unknown, **term())))
    objective = scene.objective()
    with pytest.raises(InputError, match=r"balls 0 and 1, which overlap by 0.05:"):
        objective.scene_at(objective.start).require_stable()
    with pytest.raises(InputError, match="ball 0 at"):
        objective.scene_at(np.array([-0.2, 0.4])).require_stable()


def test_a_fit_ends_before_balls_overlap(tmp_path: Path) -> None:
    """Nothing moves: the fit leads the unknown ball to its target, which lies on another ball."""
    unknown = {"place": {"parameter": "position", "entries": [0], "start": [0.6, 0.4]}}
    made = sections(unknowns=unknown, optimizer={"method": "lbfgs", "iterations": 20})
    scene = build_scene(from_dict({**made, **term(nodes=[0], target=[1.0, 0.3])}))
    fit = simphys.identify(scene, folder=tmp_path)
    assert fit.result.status == "failed" and "every trial blows up or is unphysical" in fit.result.message
    scene.objective().scene_at(fit.result.theta).require_stable()  # as far as it came, they are apart
