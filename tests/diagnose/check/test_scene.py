"""Certificates of a scene: for its own loss, in the size that its file states, always in f64."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime, tensor
from simphys.autograd.errors import InputError
from simphys.diagnose.check import Certificate, Statement
from simphys.diagnose.check.beside import check_controls, check_sensor
from simphys.diagnose.check.case import Case, Run, run
from simphys.diagnose.check.scene import check_file, check_scene
from simphys.experiment import cameras, losses
from simphys.experiment.control import Recorded
from simphys.experiment.scene import load_scene
from simphys.scenefile import ConfigError
from simphys.simulators.mass_spring.spring import SpringForce

from ...helpers.small_scenes import build, driven_square, oscillator, soft_square

SQUARE = """
title = "A soft square"
simulator = { name = "mass_spring", integrator = "semi_implicit_euler" }
time = { dt = 0.01, steps = 20 }
geometry = { lattice = { shape = [6, 6], spacing = 0.5 } }
material = { stiffness = 30.0, damping = 0.1 }
environment = { gravity = [0.0, -1.0] }
check = { overrides = ["geometry.lattice.shape=[2, 3]"] }
"""


def wrong(certificate: Certificate) -> list[str]:
    assert certificate.passed == all(statement.passed for statement in certificate.statements)
    return [statement.title for statement in certificate.statements if not statement.passed]


def test_parameters_state_and_sub_steps_have_statements(tmp_path: Path) -> None:
    told: list[Statement] = []
    found = check_scene(oscillator(tmp_path / "seen.txt"), on_statement=told.append)
    assert wrong(found) == [] and told == list(found.statements)
    names = [statement.title for statement in found.statements]
    for name in ("stiffness", "mass", "drag", "gravity", "position", "velocity"):
        for way in ("nested = fused", "binomial = stored", "adjoint = finite difference", "tangent = adjoint"):
            assert f"{name}: {way}" in names
    for sub_step in ("SpringForce", "NormalForce", "Rub", "Weight", "KickFactors", "Damp", "Kick", "Drift", "Predict"):
        for way in ("adjoint = finite difference", "tangent = adjoint"):
            assert f"{sub_step}: {way}" in names


FILMED: dict[str, Any] = {
    "observations": {
        "camera": {"scale": 150.0, "rotation": 0.3, "origin": [320.0, 240.0]},
        "channels": [
            {"column": 1, "field": "marker", "node": 0, "kind": "pixel", "axis": 1, "gain": 1.1},
            {"column": 2, "field": "angle", "node": 0, "delay": 0.02},
        ],
    }
}


def filmed(folder: Path) -> Any:
    """A pendulum whose end a camera sees, and an encoder late; the recording is random."""
    times = np.linspace(0.0, 0.4, 9)
    np.savetxt(folder / "film.txt", np.column_stack([times, np.random.default_rng(0).normal(size=(9, 2))]))
    tables = {
        "simulator": {"name": "pendulum"},
        "time": {"dt": 0.02, "steps": 20},
        "geometry": {"length": [0.5]},
        "material": {"mass": 1.0, "damping": 0.05},
        "state": {"angle": [0.7]},
    }
    return build(tables | FILMED, observations={"file": str(folder / "film.txt")})


def test_the_numbers_of_a_control_are_compared_too() -> None:
    scene = driven_square()
    samples = np.random.default_rng(0).normal(size=(12, 2))
    recorded = Recorded(
        dt=scene.dt,
        unit="N",
        times=0.02 * np.arange(12),
        samples=samples,
        control_gain=tensor([2.0, 0.5]),
        control_offset=tensor([0.0, 0.1]),
        control_delay=tensor([0.02, 0.0]),
    )
    for controls, names in ((scene.controls, {"weight", "bias"}), (recorded, {"gain", "offset", "delay"})):
        found = [each for _, made in check_controls(replace(scene, controls=controls), seed=0) for each in made]
        assert {each.name for each in found} == {f"control_{name}" for name in names}
        assert len(found) == 2 * len(names) and all(each.passed for each in found)


def test_what_enters_behind_the_motion_is_compared_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = filmed(tmp_path)
    monkeypatch.setattr("simphys.diagnose.check.scene.check", lambda *_, **__: Certificate((), (), {}))  # is slow
    found = check_scene(scene)
    assert wrong(found) == []
    names = [statement.title for statement in found.statements]
    sensor = ["gain", "offset", "delay"]
    for name in (*[f"channel_{each}" for each in sensor], "camera_scale", "camera_rotation", "length, in markers"):
        for way in ("adjoint = finite difference", "tangent = adjoint"):
            assert f"{name}: {way}" in names
    assert "mass, in markers: tangent = adjoint" not in names and found.sizes["camera_scale"] > 0

    def doubled(angles: Any, dim: int) -> Any:
        return [[entry + 0.5 * (entry - entry.detach()) for entry in row] for row in honest(angles, dim)]

    honest = cameras.rotation
    monkeypatch.setattr(cameras, "rotation", doubled)
    motion = scene.rollout()
    made = [statement for _, each in check_sensor(scene, motion, seed=0) for statement in each]
    assert [s.title for s in made if not s.passed] == ["camera_rotation: adjoint = finite difference"]


@pytest.mark.parametrize(
    "terms",
    [
        None,
        [{"kind": "final_state", "target_offset": [0.5, 0.0]}],
        [{"kind": "running_sum", "field": "velocity", "target": [0.5, 0.0]}],
    ],
)
def test_a_scene_is_checked_with_its_own_loss_or_without(terms: Any) -> None:
    assert wrong(check_scene(soft_square(loss=None if terms is None else {"terms": terms}))) == []


def test_parameters_whose_effect_is_rounding_are_not_compared() -> None:
    """Check a lattice in free fall: without stress, the gradient of its stiffness is 1e-20, all of it rounding."""
    found = check_scene(soft_square(state=None))
    assert wrong(found) == []
    assert "stiffness: adjoint = finite difference" not in [statement.title for statement in found.statements]
    assert any("too small for finite differences: stiffness" in finding for finding in found.findings)


def test_a_wrong_gradient_of_the_loss_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def detached_in_part(states: Any, target: Any, weight: float) -> Any:
        return honest(states, tensor(target.data), weight)  # loses the gradient through the target

    honest = losses.mean_square
    monkeypatch.setattr(losses, "mean_square", detached_in_part)
    assert wrong(check_scene(soft_square())) == ["position: adjoint = finite difference"]


def test_a_sub_step_with_a_wrong_adjoint_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_damping(ctx: Any, adj_force: Any) -> Any:
        *others, adj_damping, adj_rest_length = honest(ctx, adj_force)
        return (*others, adj_damping * 1.001, adj_rest_length)

    honest = SpringForce.backward
    monkeypatch.setattr(SpringForce, "backward", staticmethod(wrong_damping))
    found = check_scene(soft_square())
    assert wrong(found) == [
        "damping: nested = fused",
        "SpringForce: adjoint = finite difference",
        "SpringForce: tangent = adjoint",
    ]
    assert "the contribution to the gradient of step 19: damping[" in found.findings[0]
    assert "The error is in the nested sub-step SpringForce: its adjoint of damping is off by " in found.findings[0]


def test_the_scene_is_left_as_it_was() -> None:
    scene = soft_square()
    before = scene.state.position.data.copy()
    check_scene(scene)
    assert not scene.params.stiffness.requires_grad and scene.params.stiffness.grad is None
    np.testing.assert_array_equal(scene.state.position.data, before)


@pytest.fixture
def square(tmp_path: Path) -> Path:
    path = tmp_path / "square.toml"
    path.write_text(SQUARE)
    return path


def test_a_file_may_state_a_smaller_size_which_is_reported(square: Path) -> None:
    found = check_file(square)
    assert wrong(found) == []
    assert "The scene states a smaller size for its check: geometry.lattice.shape=[2, 3]." in str(found).splitlines()


def test_overrides_take_precedence_over_the_stated_size(square: Path) -> None:
    found = check_file(square, ["geometry.lattice.shape=[2, 2]", "time.steps=5"])
    assert "over the full horizon of 5 steps" in str(found)
    with pytest.raises(ConfigError, match="lattice"):
        check_file(square, ["geometry.lattice.shape=[0, 2]"])


def test_a_scene_in_f32_is_checked_in_f64_with_its_present_values(square: Path) -> None:
    square.write_text(SQUARE + '[runtime]\nprecision = "f32"\n')
    scene = load_scene(square, ["geometry.lattice.shape=[2, 2]", "time.steps=8"])
    assert scene.params.stiffness.dtype == np.float32
    light = scene.params.replace(gravity=scene.params.gravity * 0.0)
    found = check_scene(replace(scene, params=light, steps=5))
    assert wrong(found) == []
    assert "the full horizon of 5 steps in f64 on cpu" in str(found)  # not the 8 of its tables
    asked = [s for s in found.statements if s.claim == "f32 on cpu = f64"]
    assert {s.name for s in asked} == {"loss", *found.sizes}
    assert all(0 < s.error < 1e-3 for s in asked if found.sizes.get(s.name, 1.0) > 0)
    assert runtime.settings().precision == "f32"
    wild = scene.params.replace(stiffness=scene.params.stiffness * 0 - 1e5)
    with pytest.raises(InputError, match="check: the motion must stay finite; found a blow-up at step ") as raised:
        check_scene(replace(scene, params=wild, steps=400))
    assert raised.value.remedy and runtime.settings().precision == "f32"


def test_a_gradient_that_f32_has_lost_fails(square: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(case: Case, **options: Any) -> Run:
        found = run(case, **options)
        if found.loss.dtype == np.float32:
            lost = found.gradients["position"] * np.float32(1.02)
            return replace(found, gradients={**found.gradients, "position": lost})
        return found

    monkeypatch.setattr("simphys.diagnose.check.asked.run", lossy)
    square.write_text(SQUARE + '[runtime]\nprecision = "f32"\n')
    found = check_file(square)
    assert wrong(found) == ["position: f32 on cpu = f64"]


@pytest.mark.skipif(not runtime.available("vulkan"), reason="no Vulkan driver is installed")
def test_a_scene_is_checked_on_the_device_that_it_asks_for(square: Path) -> None:
    found = check_file(square, ["runtime.arch=vulkan", "runtime.precision=f32", "time.steps=3"])
    assert wrong(found) == []
    assert "f32 on vulkan = f64" in {statement.claim for statement in found.statements}
    assert "in f64 on cpu" in str(found)
