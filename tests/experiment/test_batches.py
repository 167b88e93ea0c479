"""Members of a launch have the bits that they have alone, whoever is beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.experiment import batches
from simphys.experiment.objective import SceneObjective
from simphys.experiment.scene import Scene, load_scene
from simphys.simulators.mass_spring.model import MassSpring

from ..helpers.oscillator import write

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def starts(path: Path, overrides: list[str], count: int) -> list[SceneObjective[Scene]]:
    """The scene's objective with several starts."""
    found = []
    for number in range(count):
        objective = batches.share_model(load_scene(path, overrides)).objective()
        objective.start = objective.start * (1 + 0.01 * number)
        found.append(objective)
    return found


def require_equal_bits(objectives: list[SceneObjective[Scene]]) -> None:
    alone = [batches.values_and_gradients([each])[0] for each in objectives]
    for part in (objectives, objectives[1:3], objectives[::-1]):
        for objective, (loss, gradient) in zip(part, batches.values_and_gradients(part), strict=True):
            expected, slope = alone[objectives.index(objective)]
            assert loss == expected
            np.testing.assert_array_equal(gradient, slope)
    for objective, (loss, gradient) in zip(objectives, alone, strict=True):
        expected, slope = objective.value_and_gradient(objective.start)
        np.testing.assert_allclose(loss, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9 * abs(slope).max())


def test_a_gradient_has_the_same_bits_alone_and_in_any_launch(tmp_path: Path) -> None:
    require_equal_bits(starts(write(tmp_path), [], 5))


@pytest.mark.parametrize("scene", ["heat/source", "billiards/carom", "pendulum/swing", "rigid/bounce"])
def test_gradients_of_other_simulators_have_the_same_bits_alone_and_in_any_launch(scene: str) -> None:
    require_equal_bits(starts(SCENES / f"{scene}.toml", [], 3))


def test_states_have_the_same_bits_alone_and_in_a_launch(tmp_path: Path) -> None:
    path = write(tmp_path)
    scenes = [batches.share_model(load_scene(path, [f"material.drag={drag}"])) for drag in (0.1, 0.2, 0.3)]
    together = list(batches.stream_states(scenes, block=7))
    assert sum([len(steps) for steps, _ in together]) == scenes[0].steps + 1
    for place, scene in enumerate(scenes):
        alone = list(batches.stream_states([scene], block=scene.steps))
        for name in scene.state.names():
            seen = np.concatenate([states[place][name] for _, states in together])
            np.testing.assert_array_equal(seen, np.concatenate([states[0][name] for _, states in alone]))


def test_scenes_that_need_other_kernels_or_steps_do_not_share_a_launch(tmp_path: Path) -> None:
    path = write(tmp_path)

    def key(*overrides: str) -> Any:
        return batches.shape_key(batches.share_model(load_scene(path, overrides)))

    assert key("material.drag=0.1") == key("material.drag=0.3") != key("material.drag=0.0")
    assert key() != key("time.dt=1e-3")
    assert not batches.is_batchable(load_scene(path, ["runtime.memory=0.5"]))


def test_models_that_are_equal_become_one(tmp_path: Path) -> None:
    path = write(tmp_path)
    one, same, other = [
        batches.share_model(load_scene(path, [change])).model
        for change in ("material.drag=0.1", "material.drag=0.2", "time.dt=1e-3")
    ]
    assert one is same and one is not other and isinstance(one, MassSpring)
    unknown = replace(load_scene(path), model=replace(one, dt=0.5))
    object.__setattr__(unknown.model, "integrator", lambda: None)  # a value that pickle does not take
    assert batches.share_model(unknown) is unknown
