"""Outlines described by modes: area, distance, and the optimization of an obstacle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.experiment.scene import build_scene
from simphys.scenefile import ConfigError, from_dict
from simphys.simulators.smoke import shapes
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.outline import Design, distance

FINE = Smoke((200, 200), spacing=0.01, dt=0.1)
CENTRE = [1.0, 0.97]
MODES = np.random.default_rng(1).normal(scale=0.3, size=(3, 2))
STRETCH = 0.2


def design(stretch: float = STRETCH, modes: np.ndarray = MODES) -> Design:
    return Design(tensor(stretch, requires_grad=True), tensor(modes, requires_grad=True))


def test_without_modes_it_is_a_disc_or_an_ellipse() -> None:
    found = distance(FINE, CENTRE, 0.4, design(0.3, np.zeros((3, 2)))).data
    np.testing.assert_allclose(found, shapes.distance(FINE, CENTRE, [0.4 * np.exp(0.3), 0.4 * np.exp(-0.3)]), atol=1e-7)
    found = distance(FINE, CENTRE, 0.4, design(0.0, np.zeros((3, 2)))).data
    np.testing.assert_allclose(found, shapes.distance(FINE, CENTRE, 0.4), atol=1e-7)


def test_its_area_stays_and_its_distance_has_slope_one() -> None:
    phi = distance(FINE, CENTRE, 0.5, design()).data
    reach = np.hypot(*[x[phi < 0] - c for x, c in zip(shapes.coordinates(FINE), CENTRE, strict=True)])
    assert reach.max() > 0.6  # not a disc
    assert np.sum(phi < 0) * FINE.spacing**2 == pytest.approx(np.pi * 0.5**2, rel=2e-3)
    slope = np.hypot(*np.gradient(phi, FINE.spacing))
    np.testing.assert_allclose(slope[abs(phi) < FINE.spacing], 1.0, atol=0.03)  # a difference over two cells


def test_it_can_be_differentiated_by_its_stretch_and_modes() -> None:
    model = Smoke((7, 6), 0.2, 0.1)

    def found(*of: Tensor) -> Tensor:
        return distance(model, [0.71, 0.63], 0.4, Design(*of))

    gradcheck(found, design().tensors(), tolerance=1e-7)


def sections(**changed: Any) -> dict[str, Any]:
    """Build the sections of a small channel with a disc."""
    return {
        "simulator": {"name": "smoke", "advection": "semi_lagrangian"},
        "time": {"dt": 0.05, "steps": 8},
        "grid": {"cells": [16, 12], "spacing": 0.1, "boundaries": {"x-": "inflow", "x+": "open"}, "slip": True},
        "fluid": {"viscosity": 0.02},
        "sides": {"x-": {"velocity": [1.0, 0.0]}},
        "obstacle": {"outline": {"centre": [0.6, 0.62], "radius": 0.25, "modes": 2}},
        "state": {"velocity": [1.0, 0.0]},
        "unknowns": {"stretch": {"parameter": "stretch"}, "outline": {"parameter": "outline"}},
        "loss": {"terms": [{"kind": "final_state", "field": "force", "nodes": [0], "target": 0.0}]},
        **changed,
    }


def test_the_gradient_of_drag_by_the_design_is_right() -> None:
    objective = build_scene(from_dict(sections())).objective()
    theta = np.array([STRETCH, *MODES[:2].reshape(-1)])
    _, gradient = objective.value_and_gradient(theta)
    step = 1e-5
    for place in range(theta.size):
        ends = [objective.value_and_gradient(theta + sign * step * np.eye(theta.size)[place])[0] for sign in (1, -1)]
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4)


@pytest.mark.parametrize(
    ("changed", "where", "message"),
    [
        ({"unknowns": {"body": {"parameter": "obstacle"}}}, "unknowns.body.parameter", "outline"),
        ({"obstacle": {"outline": {"centre": [0.6, 0.6], "radius": 0.2}}}, "obstacle.outline.modes", "required"),
        (
            {"obstacle": {"file": "none.npy", "outline": {"centre": [0.6, 0.6], "radius": 0.2, "modes": 1}}},
            "obstacle",
            "outline and file",
        ),
    ],
)
def test_inconsistent_sections_are_reported_with_their_place(changed: dict[str, Any], where: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        from_dict(sections(**changed))
    assert where in str(raised.value) and message in str(raised.value)


def test_the_optimized_body_is_recorded_with_the_flow_around_it(tmp_path: Path) -> None:
    scene = build_scene(from_dict(sections(optimizer={"method": "lbfgs", "iterations": 2})))
    fit = simphys.identify(scene, folder=tmp_path / "run")
    assert fit.result.loss < fit.result.history[0].loss
    assert abs(fit.scene.params.obstacle.data - scene.params.obstacle.data).max() > 0.01
    assert fit.scene.rollout().final.force.data[0] ** 2 == pytest.approx(fit.result.loss, rel=1e-6)
