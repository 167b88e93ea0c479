"""Energies of the members of one scene, whose controls differ: each as it would be alone, its gradient, bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import gradcheck, tensor
from simphys.diagnose.check.scene import check_scene
from simphys.diagnose.health import scene_health
from simphys.experiment.members import stack_members, take_member
from simphys.experiment.observe import Observations
from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import ConfigError, from_dict

PUSHES = [[0.1, 0.2], [-0.3, 0.1]]
"""Torques on both links in each member [N m]."""
ENERGY, KINETIC = ({"column": 1, "field": "energy", "node": 0}, {"column": 2, "field": "kinetic_energy", "node": 1})
TIMES = 0.04 * np.arange(1, 11)


def pushed(folder: Path, amplitude: Any, channels: Any, *, rows: Any = None, **changes: Any) -> Scene:
    """Two links that a pulse pushes, for 0.4 s."""
    path = folder / "energy.txt"
    np.savetxt(path, np.column_stack([TIMES, np.zeros((10, 2)) if rows is None else rows]))
    channels = [{"unit": "J", "sigma": 1e-3, **each} for each in channels]
    tables: dict[str, Any] = {
        "simulator": {"name": "pendulum"},
        "time": {"dt": 8e-3, "steps": 50},
        "geometry": {"length": [0.4, 0.3]},
        "material": {"mass": [0.5, 0.2], "damping": 0.02},
        "state": {"angle": [1.0, -0.4]},
        "control": {"kind": "wavelet", "channels": 2, "frequency": 3.0, "amplitude": amplitude},
        "observations": {"file": str(path), "channels": channels},
        "output": {"folder": str(folder / "run")},
    }
    return build_scene(from_dict(tables | changes))


def test_each_member_has_the_energy_that_it_has_alone(tmp_path: Path) -> None:
    together = pushed(tmp_path, PUSHES, [ENERGY, KINETIC])
    found = together.predict(together.rollout()).data
    for member, channel in enumerate([ENERGY, KINETIC]):
        alone = pushed(tmp_path, PUSHES[member], [{**channel, "node": []}])
        np.testing.assert_allclose(found[:, member], alone.predict(alone.rollout()).data[:, 0], rtol=1e-12)
    assert isinstance(together.observations, Observations)
    assert [each.label for each in together.observations.channels] == [
        "energy of member 0",
        "kinetic energy of member 1",
    ]


def test_the_gradient_is_right(tmp_path: Path) -> None:
    """test_energy.py has the proof that a broken energy is noticed."""
    names = {"mass": "mass", "length": "length", "angle": "angle", "push": "control_amplitude"}
    unknowns = {name: {"parameter": parameter} for name, parameter in names.items()}
    objective = pushed(tmp_path, PUSHES, [ENERGY, KINETIC], unknowns=unknowns).objective()
    theta = tensor(objective.start + 0.1, requires_grad=True)
    assert gradcheck(objective.loss_tensor, (theta,))


def test_parameters_that_each_member_has_for_itself_are_its_own(tmp_path: Path) -> None:
    scene = pushed(tmp_path, PUSHES, [ENERGY])
    assert take_member(scene, 1)[1].mass is scene.params.mass
    batch = replace(scene, params=scene.params.replace(mass=tensor([[0.5, 0.2], [0.7, 0.3]])))
    for setup in (batch, stack_members(batch)):
        model, params = take_member(setup, 1)
        assert model is scene.model and list(params.mass.data) == [0.7, 0.3]


def test_a_fit_to_energies_of_members_finds_masses(tmp_path: Path) -> None:
    made = pushed(tmp_path, PUSHES, [ENERGY, KINETIC])
    rows = made.predict(made.rollout()).data + 1e-3 * np.random.default_rng(1).standard_normal((10, 2))
    unknowns = {"mass": {"parameter": "mass", "start": [0.4, 0.26], "transform": "log", "unit": "kg"}}
    fit = simphys.identify(pushed(tmp_path, PUSHES, [ENERGY, KINETIC], rows=rows, unknowns=unknowns))
    for row, true in zip(fit.unknowns, [0.5, 0.2], strict=True):
        assert abs(row.value - true) < 3 * row.standard_error < 0.1 * true, row


def test_members_with_controls_of_their_own_are_checked_as_one_motion(tmp_path: Path) -> None:
    scene = pushed(tmp_path, PUSHES, [ENERGY, KINETIC], time={"dt": 0.05, "steps": 8})
    certificate = check_scene(scene)
    assert certificate.passed, str(certificate)
    found = scene_health(scene)
    assert found.loss == pytest.approx(scene.loss(scene.rollout()).item(), rel=1e-12)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ([], r"channels\.0\.node: must be one of the 2 members"),
        (2, r"channels\.0\.node: must be the index of one of 2 members"),
        ([0, 1], r"channels\.0\.node: must be one of the 2 members.*found \[0, 1\]"),
    ],
)
def test_a_member_has_to_be_named(node: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        pushed(tmp_path, PUSHES, [{**ENERGY, "node": node}])


def test_energies_on_a_moving_pivot_say_what_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"channels\.0\.field: needs the velocity of the pivot"):
        pushed(tmp_path, [0.1, 0.2], [{**ENERGY, "node": []}], simulator={"name": "pendulum", "drive": "pivot"})
