"""Starts of searches: they fill the bounds, or follow the priors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from simphys.app.many_starts import fit_from_many
from simphys.assess.draws import draw_starts
from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective

from ..helpers import oscillator as command
from ..helpers.small_scenes import oscillator

WEIGHT = 8.0
"""Of a prior with a standard deviation of 1 / sqrt(2 * 8) = 1/4."""
SPRING = {"kind": "regularization", "unknown": "stiffness", "towards": 10.0, "weight": WEIGHT}


def objective(folder: Path, *terms: dict[str, Any], **unknowns: Any) -> SceneObjective[Any]:
    return oscillator(folder / "seen.txt", loss={"terms": list(terms)}, unknowns=unknowns).objective()


@pytest.mark.parametrize("count", [5, 24])
def test_every_slice_of_every_unknown_has_one_start_of_a_latin_hypercube(count: int, tmp_path: Path) -> None:
    found = objective(tmp_path)
    drawn = draw_starts(found, count, 0, "latin_hypercube")
    drag = (drawn[:, 1] - found.lower[1]) / (found.upper[1] - found.lower[1])  # it has bounds
    assert sorted(np.floor(drag * count)) == list(range(count))
    near = (drawn[:, 0] - (found.start[0] - 0.3)) / 0.6  # the logarithm of a stiffness that has none
    assert sorted(np.floor(near * count)) == list(range(count))
    assert not np.array_equal(drawn, draw_starts(found, count, 1, "latin_hypercube"))


def test_starts_follow_the_prior_of_an_unknown_and_fill_the_bounds_of_others(tmp_path: Path) -> None:
    found = objective(tmp_path, SPRING)
    drawn = draw_starts(found, 256, 0, "prior")
    prior = stats.norm(np.log(10.0 / 7.0), 1 / np.sqrt(2 * WEIGHT))  # theta is log(stiffness / its start)
    assert stats.kstest(drawn[:, 0], prior.cdf).pvalue > 0.5  # more even than by chance
    np.testing.assert_array_equal(drawn[:, 1:], draw_starts(found, 256, 0, "sobol")[:, 1:])


def test_two_terms_for_one_unknown_are_one_prior_of_the_sum_of_their_precisions(tmp_path: Path) -> None:
    mean, deviation = objective(tmp_path, SPRING, {**SPRING, "towards": 7.0, "weight": 3 * WEIGHT}).priors()
    assert mean[0] == pytest.approx(np.log(10 / 7) / 4) and deviation[0] == pytest.approx(1 / 8)
    assert np.isinf(deviation[1:]).all()


def test_a_prior_is_cut_off_at_a_bound(tmp_path: Path) -> None:
    found = objective(tmp_path, SPRING, stiffness={"bounds": [6.9, 11.0]})
    drawn = draw_starts(found, 256, 0, "prior")[:, 0]
    assert found.lower[0] <= drawn.min() and drawn.max() <= found.upper[0]
    assert drawn.max() > np.log(10.9 / 7)  # not piled up at it, either: few lie within a thousandth
    assert np.mean(drawn > found.upper[0] - 1e-3) < 0.02


def test_starts_from_a_prior_lead_to_the_spring_of_the_recording(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", loss={"terms": [{**SPRING, "weight": 0.5}]})
    fit, found = fit_from_many(scene, folder=tmp_path / "run", starts=5, draw="prior")
    assert fit.unknowns[0].value == pytest.approx(9.0, rel=0.02) and len(found.loss) == 5
    assert fit.recording.attrs("many_starts")["draw"] == "prior"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        ("halton", "--draw: it is one of sobol, latin_hypercube, prior; found halton. Choose one of these."),
        ("prior", "--draw: prior needs an unknown with a prior; found none. Add a term of kind regularization"),
    ],
)
def test_a_draw_that_there_is_none_of_is_refused(draw: str, message: str, tmp_path: Path) -> None:
    result = command.simphys("multistart", command.write(tmp_path), "--draw", draw, f"output.folder={tmp_path / 'run'}")
    assert result.exit_code == 2 and message in result.stderr
    with pytest.raises(InputError):
        draw_starts(objective(tmp_path), 8, 0, draw)
