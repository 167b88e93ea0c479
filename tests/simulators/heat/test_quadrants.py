"""Four conductivities over a hundredfold range are found from starts on either side of all of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys.experiment.scene import Scene

PATH = Path(__file__).parents[3] / "scenes" / "heat" / "quadrants.toml"
TRUE = {"lower_left": 1.0, "lower_right": 0.1, "upper_left": 0.1, "upper_right": 0.01}
LINEAR = [f'unknowns.{label}.transform="linear"' for label in TRUE]


def plate(start: float, *overrides: str) -> Scene:
    return simphys.load_scene(PATH, [f"medium.conductivity={start}", *overrides])


def find(scene: Scene) -> dict[str, float]:
    """Fit the quadrants, and leave the judgement out: values in W/(m K)."""
    objective = scene.objective()
    found = simphys.optimize.minimize(objective, method="least_squares", iterations=50, tolerance=1e-10)
    assert found.status == "converged"
    return dict(zip(objective.labels, objective.unknowns.natural(found.theta).tolist(), strict=True))


@pytest.mark.parametrize("logarithms", [True, False], ids=["log", "linear"])
@pytest.mark.parametrize("start", [0.02, 5.0])
def test_a_plate_that_conducts_too_badly_and_one_too_well_lead_to_the_same_metals(
    start: float, logarithms: bool
) -> None:
    found = find(plate(start, *([] if logarithms else LINEAR)))
    for label, true in TRUE.items():
        assert found[label] == pytest.approx(true, rel=1e-4), label  # the recording has six decimals


def test_the_recording_tells_each_quadrant_from_the_others() -> None:
    """No two columns of the Jacobian at the truth are alike: the optimum is one point, not a valley."""
    objective = plate(0.3, *[f"unknowns.{label}.start={true}" for label, true in TRUE.items()]).objective()
    columns = objective.jacobian(objective.start)
    columns = columns / np.linalg.norm(columns, axis=0)
    for one, other in itertools.combinations(range(4), 2):
        assert abs(columns[:, one] @ columns[:, other]) < 0.9


def test_the_verdict_doubts_conductivities_that_a_tenth_of_the_time_as_a_step_has_made(tmp_path: Path) -> None:
    fit = simphys.identify(plate(5.0), folder=tmp_path / "run")
    verdicts = {each.name: each.verdict for each in fit.criteria}
    assert verdicts.pop("time step") == "doubtful" and set(verdicts.values()) == {"passed"}
