"""Recordings that disagree about a parameter of the model leave no fit passed, whatever their residuals say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys.app.workflow import Identification
from simphys.assess.agreement import judge_agreement
from simphys.assess.criteria import Criterion
from simphys.assess.shared import Recordings
from simphys.assess.uncertainty import Uncertainty

from ..experiment.test_several import build, tables


def fit_springs(folder: Path, *, same: bool) -> Identification:
    """A spring of its own for each of three recordings; their springs are the same if their masses are known."""
    given = tables(folder)
    given["unknowns"]["spring"] |= {"experiments": "each", "truth": None}
    for experiment in given["experiments"]:
        if not same:
            experiment["values"].pop("mass")
    return simphys.identify(build(given))


def find(fit: Identification) -> Criterion | None:
    return next((each for each in fit.criteria if each.name == "agreement"), None)


@pytest.fixture(scope="module")
def agreed(tmp_path_factory: pytest.TempPathFactory) -> Identification:
    return fit_springs(tmp_path_factory.mktemp("agreed"), same=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Identification:
    return simphys.identify(build(tables(tmp_path_factory.mktemp("shared"))))


def test_recordings_that_disagree_about_a_parameter_are_doubtful(tmp_path: Path) -> None:
    fit = fit_springs(tmp_path, same=False)
    line = find(fit)
    assert line is not None and line.verdict == fit.verdict == "doubtful"
    assert [each.name for each in fit.criteria if each.verdict != "passed"] == ["agreement"]
    assert "spring differs between recordings by more than its errors allow: 8.99, 5.99, 4.5 (chi^2 " in line.found
    assert "for 2 degrees of freedom" in line.found and "its model is incomplete" in line.remedy
    assert "agreement" in fit.recording["judgement/name"] and line.value > 1e4


def test_recordings_that_agree_pass_and_chi_square_is_about_the_weighted_mean(agreed: Identification) -> None:
    line = find(agreed)
    assert line is not None and line.verdict == agreed.verdict == "passed" and not line.remedy
    rows = [row for row in agreed.unknowns if row.label.startswith("spring")]
    chi = []
    for errors in ([row.standard_error for row in rows], [row.robust_error for row in rows]):
        values, weights = np.array([row.value for row in rows]), np.array(errors) ** -2.0
        chi.append(np.sum(weights * (values - weights @ values / weights.sum()) ** 2))
    assert line.value == pytest.approx(min(chi), rel=0.05)  # starts correlate springs a little


def test_starts_that_differ_are_not_compared(shared: Identification) -> None:
    line = find(shared)
    assert line is not None and line.found.startswith("recordings agree about spring: chi^2 ")
    assert "start" not in line.found


def test_a_shared_unknown_is_estimated_as_fits_of_its_own_find_it(
    shared: Identification, agreed: Identification
) -> None:
    before = shared.uncertainty
    assert before is not None
    found = Recordings(before).estimate(0)
    assert found is not None
    values = before.natural[0] * np.exp(found.changes)
    errors = [row.standard_error for row in agreed.unknowns[:3]]
    np.testing.assert_allclose(values, [row.value for row in agreed.unknowns[:3]], atol=0.02 * min(errors))
    assert agreed.uncertainty is not None
    for mine, theirs in zip(
        found.covariances, (agreed.uncertainty.standard.covariance, agreed.uncertainty.robust_covariance), strict=True
    ):
        differ = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
        np.testing.assert_allclose(differ @ mine @ differ.T, differ @ theirs[:3, :3] @ differ.T, rtol=0.1)


def test_recordings_that_disagree_about_what_they_share_are_doubtful(tmp_path: Path) -> None:
    """A mass that is stated 1.5 % too large asks for a stiffer spring; the misfit does not show it."""
    given = tables(tmp_path)
    given["experiments"][1]["values"]["mass"]["value"] *= 1.015
    fit = simphys.identify(build(given))
    line, misfit = find(fit), next(each for each in fit.criteria if each.name == "misfit")
    assert line is not None and line.verdict == "doubtful" and misfit.verdict == "passed"
    assert 'with experiments = "each"' in line.remedy
    assert "spring differs between recordings by more than its errors allow: 8.99" in line.found


def test_an_unknown_that_one_recording_tells_is_not_compared(shared: Identification) -> None:
    before = shared.uncertainty
    assert before is not None

    def change(place: int, column: int, values: float | int) -> Uncertainty:
        """Set the derivatives by an unknown to a number, or to those by another one, in a recording."""
        parts = list(before.series)
        jacobian = parts[place].jacobian.copy()
        jacobian[..., column] = jacobian[..., values] if isinstance(values, int) else values
        parts[place] = replace(parts[place], jacobian=jacobian)
        rows = [each.jacobian.reshape(-1, jacobian.shape[-1]) for each in parts]
        return replace(before, series=tuple(parts), jacobian=np.concatenate(rows))

    assert Recordings(before).estimate(0) is not None
    two = Recordings(replace(before, series=change(1, 0, 0.0).series)).estimate(0)
    assert two is not None and two.changes.size == 2  # the second one does not see the spring
    assert Recordings(change(1, 2, 0)).estimate(0) is None  # its own start acts there as the spring does
    assert Recordings(before).estimate(1) is None  # a start of its own


def test_values_disagree_beyond_the_errors_that_allow_for_correlation(agreed: Identification) -> None:
    before = agreed.uncertainty
    assert before is not None
    moved = before.theta.copy()
    moved[0] += 12 * np.fmax(before.standard.values, before.robust)[:3].max()

    def verdict(factor: float) -> str:
        after = replace(before, theta=moved, robust_covariance=factor**2 * before.robust_covariance)
        line = judge_agreement(agreed.scene, after)
        assert line is not None
        return line.verdict

    assert (verdict(1.0), verdict(20.0)) == ("doubtful", "passed")


def test_a_value_without_an_error_is_not_compared(agreed: Identification) -> None:
    before = agreed.uncertainty
    assert before is not None
    moved, errors = before.theta.copy(), before.standard.values.copy()
    moved[0], errors[0] = 5.0, np.nan
    line = judge_agreement(agreed.scene, replace(before, theta=moved, standard=replace(before.standard, values=errors)))
    assert line is not None and line.verdict == "passed" and "for 1 degree of freedom" in line.found
    errors[1] = np.nan
    assert judge_agreement(agreed.scene, replace(before, standard=replace(before.standard, values=errors))) is None
