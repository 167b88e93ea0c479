"""The rank report names unknowns that the data cannot tell apart; standard errors are those of repeated fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.optimize import active_bounds, minimize, rank_report, standard_errors

RNG = np.random.default_rng(3)
COLUMNS = RNG.standard_normal((50, 5))
NAMES = ["k left", "k right", "mass", "drag", "gravity"]


def test_independent_columns_have_full_rank_in_any_units() -> None:
    report = rank_report(COLUMNS * [1e-9, 1, 1e9, 1e-3, 1e3], NAMES)
    assert report.full and report.rank == 5 and not report.confused and not report.unseen
    np.testing.assert_allclose(report.singular_values, rank_report(COLUMNS, NAMES).singular_values)
    report.require_full()


def test_unknowns_that_act_alike_are_named_and_no_others() -> None:
    alike = COLUMNS.copy()
    alike[:, 1] = 3 * alike[:, 0]
    report = rank_report(alike, NAMES)
    assert report.rank == 4
    assert report.confused == (("k left", "k right"),)


def test_separate_confusions_are_separate_groups_even_with_one_null_space() -> None:
    alike = COLUMNS.copy()
    alike[:, 1] = alike[:, 0]
    alike[:, 4] = alike[:, 2] - 2 * alike[:, 3]
    report = rank_report(alike, NAMES)
    assert report.rank == 3
    assert report.confused == (("k left", "k right"), ("mass", "drag", "gravity"))


@pytest.mark.parametrize("coupling", [0.05, 1e-3, 1e-5])
def test_an_unknown_that_takes_little_part_is_named_too(coupling: float) -> None:
    """a + b + coupling c has no effect, whatever c alone has: none of the three has an error, d has one."""
    J = np.random.default_rng(0).standard_normal((50, 4))
    J /= np.linalg.norm(J, axis=0)
    J[:, 1] = -J[:, 0] - coupling * J[:, 2]
    report = rank_report(J, ["a", "b", "c", "d"])
    assert report.confused == (("a", "b", "c"),) and report.rank == 3
    found = standard_errors(J, np.random.default_rng(1).standard_normal(50))
    assert np.isfinite(found.values).tolist() == [False, False, False, True]


def test_an_unknown_that_changes_nothing_is_named() -> None:
    report = rank_report(COLUMNS * [1, 1, 1, 0, 1], NAMES)
    assert report.unseen == ("drag",) and report.confused == () and report.rank == 4


def test_fewer_observations_than_unknowns_cannot_have_full_rank() -> None:
    report = rank_report(COLUMNS[:3], NAMES)
    assert report.rank == 3
    assert report.confused == (tuple(NAMES),)


def test_rounding_limits_which_unknowns_are_distinguished() -> None:
    nearly = COLUMNS.copy()
    nearly[:, 1] = nearly[:, 0] + 1e-5 * nearly[:, 1]
    assert rank_report(nearly, NAMES).full
    assert rank_report(nearly, NAMES, precision="f32").confused == (("k left", "k right"),)


def test_the_error_names_the_unknowns_the_rank_and_the_remedy() -> None:
    poor = COLUMNS * [1, 1, 1, 1, 0]
    poor[:, 1] = poor[:, 0]
    with pytest.raises(InputError) as caught:
        rank_report(poor, NAMES).require_full()
    assert str(caught.value) == (
        "unknowns: the data must determine all 5 unknowns (rank of the Jacobian at the start); "
        "found rank 3: k left, k right can change together without any effect; gravity changes no observation. "
        "Tie some of them together, fix one (leave it out of the unknowns), or observe more."
    )


def test_a_jacobian_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match="the Jacobian at the start must be finite"):
        rank_report(COLUMNS * np.nan, NAMES)


def test_standard_errors_are_those_of_linear_regression() -> None:
    residuals = RNG.standard_normal(50)
    errors = standard_errors(COLUMNS, residuals)
    variance = residuals @ residuals / 45 * np.linalg.inv(COLUMNS.T @ COLUMNS)
    np.testing.assert_allclose(errors.values, np.sqrt(np.diag(variance)))
    assert errors.sigma == pytest.approx(np.sqrt(residuals @ residuals / 45))
    assert errors.notes == ("",) * 5


def test_missing_samples_do_not_count() -> None:
    residuals = RNG.standard_normal(50)
    padded = standard_errors(np.vstack([COLUMNS, np.zeros((30, 5))]), np.concatenate([residuals, np.zeros(30)]))
    np.testing.assert_allclose(padded.values, standard_errors(COLUMNS, residuals).values)


def test_an_unknown_at_a_bound_has_no_standard_error_and_says_so() -> None:
    residuals = RNG.standard_normal(50)
    theta, lower, upper = np.array([0.0, 1, 2, 3, 4]), np.full(5, -1.0), np.array([9, 9, 9, 3 + 1e-9, 9])
    errors = standard_errors(COLUMNS, residuals, active=active_bounds(theta, lower, upper))
    assert np.isnan(errors.values[3]) and errors.notes[3] == "at a bound"
    rest = [0, 1, 2, 4]
    np.testing.assert_allclose(errors.values[rest], standard_errors(COLUMNS[:, rest], residuals).values)


def test_unknowns_that_are_not_told_apart_have_no_standard_error_but_the_others_do() -> None:
    alike = COLUMNS.copy()
    alike[:, 1] = alike[:, 0]
    errors = standard_errors(alike, RNG.standard_normal(50))
    assert np.isnan(errors.values[:2]).all() and np.isfinite(errors.values[2:]).all()
    assert errors.notes[:2] == ("not told apart by the data",) * 2


def test_too_few_observations_give_no_standard_errors() -> None:
    errors = standard_errors(COLUMNS[:5], np.ones(5))
    assert np.isnan(errors.values).all() and np.isnan(errors.sigma)
    assert set(errors.notes) == {"no more observations than unknowns"}


def test_standard_errors_are_the_scatter_of_repeated_fits(from_residuals: Any) -> None:
    time = np.linspace(0, 4, 60)
    random, fits, predicted = np.random.default_rng(0), [], []
    for _ in range(200):
        seen = 2 * np.exp(-0.8 * time) + 0.3 + 0.05 * random.standard_normal(time.size)

        def residuals(theta: np.ndarray, seen: np.ndarray = seen) -> np.ndarray:
            return theta[0] * np.exp(-theta[1] * time) + theta[2] - seen

        objective = from_residuals(residuals, [1, 1, 0])
        found = minimize(objective)
        assert found.success
        fits.append(found.theta)
        predicted.append(standard_errors(objective.jacobian(found.theta), objective.residuals(found.theta)).values)
    np.testing.assert_allclose(np.mean(predicted, axis=0), np.std(fits, axis=0), rtol=0.15)
