"""Several experiments at once in one scene: simulated, recorded, drawn, fitted, checked, as each would be alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys import plot
from simphys.autograd import gradcheck, ops
from simphys.autograd.errors import InputError
from simphys.diagnose.check.scene import check_scene
from simphys.diagnose.health import scene_health
from simphys.experiment.members import stack_members, take_members
from simphys.rollout import BlowUp, rollout
from simphys.scenefile import ConfigError

from ..helpers.rounding import assert_equal_but_for_rounding
from ..helpers.row_scene import RELEASES, TRUTH, register, row


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


STIFFNESS = {"stiffness": {"parameter": "stiffness", "transform": "log", "unit": "1/s^2"}}
LAST = {"kind": "final_state", "field": "angle", "target": 0.1}
ALONG = {"kind": "running_sum", "field": "rate", "nodes": [1], "target": 0.05, "weight": 3.0}


def alone(folder: Path, member: int, **changes: Any) -> Any:
    return row(folder, start={"angle": RELEASES[member]}, **changes)


def test_each_member_moves_as_it_would_alone_and_is_recorded_behind_the_time(tmp_path: Path) -> None:
    run = simphys.simulate(row(tmp_path))
    for member in range(2):
        motion = alone(tmp_path, member).rollout()
        assert_equal_but_for_rounding(run["fields/angle/value"][:, member], motion.angle.data, ulps=100)
    plot.all_figures(run, tmp_path / "pictures")


def test_the_loss_of_all_is_the_mean_over_members_of_theirs(tmp_path: Path) -> None:
    of_all, of_one = ({"terms": [LAST, ALONG]}, {"terms": [LAST, {**ALONG, "nodes": None}]})
    scene = row(tmp_path, loss=of_all)
    found = scene.loss(scene.rollout()).item()
    each = []
    for member in range(2):
        single = alone(tmp_path, member, loss={"terms": [LAST]})
        each.append(single.loss(single.rollout()).item())
    second = alone(tmp_path, 1, loss={"terms": [of_one["terms"][1]]})
    assert found == pytest.approx(np.mean(each) + second.loss(second.rollout()).item(), rel=1e-12)
    limited = row(tmp_path, loss=of_all, runtime={"memory": "100kB"})
    assert limited.loss(limited.rollout()).item() == pytest.approx(found, rel=1e-12)


def test_a_target_from_the_start_is_that_of_each_member(tmp_path: Path) -> None:
    term = {"kind": "final_state", "field": "angle", "target_offset": 0.2}
    scene = row(tmp_path, loss={"terms": [term]})
    motion = scene.rollout()
    away = motion.final.angle.data - (np.array(RELEASES) + 0.2)
    assert scene.loss(motion).item() == pytest.approx(np.mean(away**2), rel=1e-12)


def test_channels_name_the_member_first(tmp_path: Path) -> None:
    motion = row(tmp_path).rollout()
    times = motion.steps * 0.05
    np.savetxt(tmp_path / "seen.txt", np.column_stack([times, motion.angle.data[1, :, 2]]))
    channels = [{"column": 1, "field": "angle", "node": [1, 2]}]
    scene = row(tmp_path, observations={"file": str(tmp_path / "seen.txt"), "channels": channels})
    assert_equal_but_for_rounding(scene.predict(scene.rollout()).data[:, 0], motion.angle.data[1, :, 2], ulps=50)
    residual = simphys.simulate(scene)["fit/residual"]
    assert_equal_but_for_rounding(residual, 0 * residual, ulps=50, size=np.abs(motion.angle.data).max())
    with pytest.raises(ConfigError, match="one of 2 nodes"):
        row(tmp_path, observations={"file": "seen.txt", "channels": [{**channels[0], "node": [2, 0]}]})


def test_a_medium_that_all_share_is_found_from_all(tmp_path: Path) -> None:
    truth = row(tmp_path, material={"stiffness": TRUTH}).rollout()
    target = truth.final.angle.data.tolist()
    terms = [{"kind": "final_state", "field": "angle", "target": target}]
    fit = simphys.identify(row(tmp_path, unknowns=STIFFNESS, loss={"terms": terms}, optimizer={"method": "lbfgs"}))
    assert fit.result.success
    np.testing.assert_allclose([unknown.value for unknown in fit.unknowns], TRUTH, rtol=1e-3)
    run = fit.recording
    assert run["adjoint/angle"].shape == (81, 2, 3)
    plot.all_figures(run, tmp_path / "pictures")


def test_only_chosen_fields_are_recorded(tmp_path: Path) -> None:
    run = simphys.simulate(row(tmp_path, output={"fields": ["rate"]}))
    assert run.keys("fields") == ["rate"]
    with pytest.raises(ConfigError, match=r"output\.fields\.0: must be a component of the state"):
        row(tmp_path, output={"fields": ["speed"]})


def test_a_blow_up_names_the_member(tmp_path: Path) -> None:
    wild = row(tmp_path, start={"angle": [[0.1] * 3, [0.1, 0.1, 1e101]]})
    with pytest.raises(BlowUp, match=r"at step 0 .* first in angle\[1, 2\]"):
        wild.rollout()


def test_the_gradient_is_checked_and_its_health_is_told_of_all_together(tmp_path: Path) -> None:
    scene = row(tmp_path, time={"steps": 12}, loss={"terms": [LAST, ALONG]})
    certificate = check_scene(scene)
    assert certificate.passed, str(certificate)
    found = scene_health(scene)
    assert found.adjoint["angle"].shape == (13, 2, 3) and found.fault is None
    assert found.loss == pytest.approx(scene.loss(scene.rollout()).item(), rel=1e-12)


def test_a_check_of_the_first_members_holds_those_that_channels_see(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "seen.txt", [[0.1, 0.0], [0.2, 0.0]])
    seen = {"file": str(tmp_path / "seen.txt"), "channels": [{"column": 1, "field": "angle", "node": [1, 2]}]}
    scene = row(tmp_path, time={"steps": 7}, observations=seen)
    assert take_members(scene, 2) is scene
    with pytest.raises(InputError, match=r"check\.members: .*found 1, and a channel of member 1\. Raise it to 2"):
        take_members(scene, 1)


def test_members_as_one_motion_have_the_gradient_that_they_have_as_a_batch(tmp_path: Path) -> None:
    scene = stack_members(row(tmp_path, time={"steps": 7}))
    params = [leaf.detach().requires_grad_() for leaf in scene.params.tensors()]
    state = [leaf.detach().requires_grad_() for leaf in scene.state.tensors()]

    def last(*leaves: Any) -> Any:
        made = rollout(
            scene.model, scene.params.replace(stiffness=leaves[0], damping=leaves[1]),
            scene.state.replace(angle=leaves[2], rate=leaves[3]), steps=7,
        )  # fmt: skip
        return ops.concatenate([made.final.angle, made.states.rate[3]])

    assert gradcheck(last, (*params, *state)).outcome == "passed"
