"""Scenes of both precisions in one process: each computes in its own settings, with the numbers of its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys import rollout
from simphys.autograd import InputError, Tensor, no_grad, runtime
from simphys.autograd.function import Observer
from simphys.autograd.kernels.runtime import Settings
from simphys.autograd.mode import switch
from simphys.diagnose.health import scene_health
from simphys.experiment.scene import Scene, build_scene, load_scene
from simphys.scenefile import load

from ..helpers import oscillator, small_scenes
from ..helpers.rounding import assert_equal_but_for_rounding

SCENES = Path(__file__).parents[2] / "scenes"
FEW = {
    "billiards/pocket": [],
    "charges/find_charges": [],
    "mass_spring/cloth": ["time.steps=50"],
    "mass_spring/crawler": [],
    "mpm/throw": ["time.steps=30"],
    "pendulum/double": [],
    "pendulum/swing": [],
    "rigid/dropped_ball": [],
    "shallow_water/harbour": ["time.steps=30"],
    "smoke/cavity": ["time.steps=3"],
    "smoke/drag": ["time.steps=3"],
    "wave/drop": ["time.steps=20"],
}
"""A scene for each simulator, and for each way to keep what depends on the precision; overrides that make it short."""


def build(name: str, precision: str, *overrides: str) -> Scene:
    """Build a scene in the size of its check."""
    file = SCENES / f"{name}.toml"
    return build_scene(load(file, [*load(file).check.overrides, *overrides, f"runtime.precision={precision}"]))


def run(scene: Scene) -> tuple[Any, Tensor]:
    """Return parameters that require a gradient, and a loss that depends on them."""
    params = scene.params.replace(**{name: Tensor(value.copy()) for name, value in scene.params.arrays().items()})
    for value in params.tensors():
        value.requires_grad_()
    fields = [each for each in scene.rollout(params).final.tensors() if each.requires_grad and each.size]
    losses = [(each * each).sum() for each in fields]
    total = losses[0]
    for each in losses[1:]:
        total = total + each
    return params, total


def gradients(params: Any, loss: Tensor) -> dict[str, np.ndarray]:
    loss.backward()
    tensors = zip(params.names(), params.tensors(), strict=True)
    found = {name: value.grad.data for name, value in tensors if value.grad is not None}
    return {"loss": loss.data, **found}


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Of the same kernels, launched twice in one process."""
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.parametrize("name", FEW)
def test_scenes_in_both_precisions_take_turns(name: str) -> None:
    exact, coarse = (build(name, precision, *FEW[name]) for precision in ("f64", "f32"))
    first, second = run(exact), run(coarse)
    assert runtime.settings().precision == "f32"
    expected = gradients(*first)  # of f64, while f32 is in force
    assert runtime.settings().precision == "f32"
    assert_same(gradients(*run(exact)), expected)
    rounded = gradients(*second)  # of f32, while f64 is in force
    assert_same(gradients(*run(coarse)), rounded)
    assert {values.dtype.name for values in expected.values()} == {"float64"}
    assert {values.dtype.name for values in rounded.values()} == {"float32"}
    np.testing.assert_allclose(rounded["loss"], expected["loss"], rtol=1e-2)


ALONE = """
import sys, numpy as np
from tests.experiment.test_settings_of_scenes import build, gradients, run
np.savez(sys.argv[1], **gradients(*run(build(*sys.argv[2:]))))
"""
SHORT = {"mass_spring/air_track": "time.duration=0.5", "mass_spring/cloth": "time.steps=50"}
"""Some 50 steps: rounding, which another process may do otherwise, grows little."""


@pytest.mark.parametrize("name", SHORT)
def test_results_are_those_of_processes_with_one_precision_each(name: str, tmp_path: Path) -> None:
    alone = {}
    for precision in ("f64", "f32"):
        file = tmp_path / f"{precision}.npz"
        given = [str(file), name, precision, SHORT[name]]
        subprocess.run([sys.executable, "-c", ALONE, *given], check=True, cwd=SCENES.parent)
        alone[precision] = dict(np.load(file))
    for precision in ("f64", "f32", "f64"):
        found = gradients(*run(build(name, precision, SHORT[name])))
        assert found.keys() == alone[precision].keys()
        for key, values in alone[precision].items():
            assert found[key].dtype == values.dtype
            assert_equal_but_for_rounding(found[key], values, ulps=200)


def test_a_fit_is_the_same_before_and_after_a_fit_in_another_precision(tmp_path: Path) -> None:
    exact = small_scenes.oscillator(tmp_path / "seen.txt")
    coarse = small_scenes.oscillator(tmp_path / "seen.txt", runtime={"precision": "f32"})
    found = [simphys.identify(scene).result.theta for scene in (exact, coarse, exact)]
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-2)
    assert found[1].tolist() != found[0].tolist()
    objectives = [scene.objective() for scene in (exact, coarse)]
    for objective, precision in zip(objectives, ("f64", "f32"), strict=True):
        others = {"f64": "f32", "f32": "f64"}
        for evaluate in (objective.value_and_gradient, objective.residuals, objective.jacobian, objective.scene_at):
            runtime.init(precision=others[precision])
            evaluate(objective.start)
            assert runtime.settings().precision == precision


def test_everything_that_simulates_a_scene_starts_its_settings(tmp_path: Path) -> None:
    scene = small_scenes.driven_square(runtime={"precision": "f32"}, check={"overrides": []})
    own, other = runtime.settings(), Settings()
    assert own == Settings(precision="f32")

    def nested() -> Any:
        return scene.rollout(mode="nested").states.position.dtype.name

    def recorded() -> Any:
        recording = simphys.simulate(scene, folder=tmp_path / "run")
        return str(recording.provenance["precision"]).replace("f", "float")

    def health() -> Any:
        return scene_health(scene).adjoint["position"].dtype.name

    def control() -> Any:
        signal = scene.control()
        assert signal is not None
        return signal.dtype.name

    for use in (nested, recorded, health, control):
        runtime.init(precision=other.precision)
        assert use() == "float32"
        assert runtime.settings() == own


def test_a_stream_goes_on_in_the_settings_of_its_scene() -> None:
    scene = small_scenes.soft_square(runtime={"precision": "f32"})
    expected = [states["position"] for _, states in scene.stream(block=4)]
    found = []
    for _, states in scene.stream(block=4):
        found.append(states["position"])
        runtime.init(precision="f64")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_rollout_of_tensors_in_another_precision_is_refused() -> None:
    scene = small_scenes.soft_square()
    runtime.init(precision="f32")
    for mode in ("fused", "step", "nested"):
        with pytest.raises(InputError, match=r"rollout, state.position: it computes in float32.*found float64.*f64"):
            rollout.rollout(scene.model, scene.params, scene.state, steps=3, mode=mode)
    with pytest.raises(InputError, match="float32"):
        scene.model.step(scene.params, scene.state, None)


class Recorded(Observer):
    """All applications of Functions with their inputs and results."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, tuple[Any, ...], list[np.ndarray]]] = []

    def after_forward(self, ctx: Any, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...]) -> None:
        self.found.append((ctx.function, inputs, [output.data for output in outputs]))


@pytest.mark.parametrize("precision", ["f64", "f32"])
@pytest.mark.parametrize("name", FEW)
def test_no_sub_step_converts_its_inputs_silently(name: str, precision: str) -> None:
    """In another precision a sub-step refuses its inputs, or gives the same numbers if it needs no kernel."""
    scene = build(name, precision, *FEW[name])
    control, recorded = scene.control(), Recorded()
    before, switch.observers = switch.observers, (recorded,)
    try:
        with no_grad():
            force = None if control is None else Tensor(control.data.reshape(-1, *control.shape[-1:])[0].copy())
            if scene.members is None:
                scene.model.step(scene.params, scene.state, force)
    finally:
        switch.observers = before
    runtime.init(precision="f32" if precision == "f64" else "f64")
    for function, inputs, expected in recorded.found:
        try:
            results = function.apply(*inputs)
        except InputError:
            continue
        results = results if isinstance(results, tuple) else (results,)
        for result, values in zip(results, expected, strict=True):
            assert result.dtype == values.dtype, function.__name__
            np.testing.assert_array_equal(result.data, values, err_msg=function.__name__)


def test_a_scene_of_more_threads_goes_on_after_one_of_fewer(tmp_path: Path) -> None:
    file = oscillator.write(tmp_path)
    scenes = {threads: load_scene(file, [f"runtime.threads={threads}"]) for threads in (2, 1, 4)}
    found = {}
    for threads, scene in scenes.items():
        found[threads] = scene.rollout().states.position.data
        assert runtime.settings().threads == threads
    for threads in (1, 4):
        assert_equal_but_for_rounding(found[threads], found[2], ulps=1000)  # through 500 steps
