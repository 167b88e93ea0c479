"""Recoveries, profiles, starts, samples and finite differences by workers are as in one process, but for rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.app.assessment import search_again
from simphys.app.mapping import ATTEMPTS, map_on, open_map
from simphys.assess.draws import draw_starts
from simphys.assess.recovery import recover
from simphys.assess.starts import try_starts
from simphys.assess.uncertainty import estimate_uncertainty
from simphys.diagnose.check import derivatives
from simphys.diagnose.check.case import run
from simphys.diagnose.check.scene import _case
from simphys.experiment.lockstep import PART, Lockstep
from simphys.experiment.scene import load_scene
from simphys.optimize import RandomizedSmoothing, minimize
from simphys.optimize.likelihood import profile_intervals
from simphys.optimize.mapping import Carried, Map
from simphys.optimize.randomized import estimate

from ..helpers.oscillator import simphys, write

ALIKE: Any = {"rtol": 1e-6, "atol": 1e-9}
"""BLAS rounds sums by where arrays lie in memory; fits that differ so end as near as their tolerance lets them."""


@pytest.fixture(scope="module")
def each() -> Iterator[Map]:
    with pytest.MonkeyPatch.context() as patch, open_map(2) as made:
        patch.syspath_prepend(Path(__file__).parents[2])  # where a new process finds a function of this file
        yield made


def test_fits_and_profiles_by_workers_are_those_of_one_process(tmp_path: Path, each: Map) -> None:
    pytest.importorskip("iminuit")
    objective = load_scene(write(tmp_path)).objective()
    fit = minimize(objective)
    errors = estimate_uncertainty(objective, fit.theta)
    near = partial(search_again, horizon="full")
    one, other = [recover(objective, errors, near, until=math.inf, times=5, each=way).error for way in (map, each)]
    np.testing.assert_allclose(one, other, **ALIKE)
    standard = errors.standard
    starts = [try_starts(objective, fit, standard.values, search_again, until=0, each=way) for way in (map, each)]
    np.testing.assert_allclose(starts[0].theta, starts[1].theta[: len(starts[0].theta)], **ALIKE)
    profiles = [
        profile_intervals(objective, fit.theta, standard.values, standard.sigma, each=way) for way in (map, each)
    ]
    np.testing.assert_allclose(profiles[0].below, profiles[1].below, **ALIKE)
    np.testing.assert_allclose(profiles[0].above, profiles[1].above, **ALIKE)
    assert np.isfinite(profiles[0].above).all()


def test_evaluations_by_workers_are_those_of_one_process(tmp_path: Path, each: Map) -> None:
    objective = load_scene(write(tmp_path)).objective()
    thetas = draw_starts(objective, PART + 3, 0)
    thetas[2, 0] = 1e6  # this one fails
    for name in ("residuals", "jacobians"):
        one, other = [getattr(Lockstep(objective, way), name)(thetas) for way in (map, each)]
        np.testing.assert_allclose(one, other, **ALIKE)
    assert np.isnan(one[2]).all() and np.isfinite(one[PART + 2]).all()
    smoothing = RandomizedSmoothing(radius=0.01, samples=4)
    alone, shared = [estimate(objective, objective.start, smoothing, each=way) for way in (map, each)]
    assert alone.loss == pytest.approx(shared.loss, rel=1e-6)
    np.testing.assert_allclose(alone.gradient, shared.gradient, **ALIKE)


def test_finite_differences_by_workers_are_those_of_one_process(
    tmp_path: Path, each: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Products of tangents and adjoints are summed by BLAS, whose last bits depend on where arrays lie in memory."""
    monkeypatch.setattr(derivatives, "find_negligible", lambda case, _: sorted({*case.leaves()} - {"mass", "position"}))
    case = _case(load_scene(write(tmp_path), ["time.steps=20", "observations.window=[0.0, 0.04]"]), 0)
    fused = run(case, once=True)
    one, other = [list(derivatives.check_derivatives(case, fused, seed=0, each=way)) for way in (map, each)]
    assert [(each.name, each.claim) for each in one] == [(each.name, each.claim) for each in other]
    assert len(one) == 4 and all(statement.passed for statement in (*one, *other))


def test_a_task_whose_worker_dies_is_begun_again() -> None:
    class Mortal:
        """An engine whose worker dies before some of its tasks are done."""

        def __init__(self, deaths: int) -> None:
            self.deaths = deaths

        def submit(self, function: Any, argument: Any) -> Future[Any]:
            future: Future[Any] = Future()
            if self.deaths:
                self.deaths -= 1
                future.set_exception(BrokenExecutor("killed"))
            else:
                future.set_result(function(argument))
            return future

    assert list(map_on(Mortal(ATTEMPTS - 1), 2)(math.sqrt, [1.0, 4.0, 9.0])) == [1.0, 2.0, 3.0]
    with pytest.raises(BrokenExecutor):
        list(map_on(Mortal(ATTEMPTS), 1)(math.sqrt, [1.0]))
    with pytest.raises(ValueError, match="math domain"):
        list(map_on(Mortal(0), 2)(math.sqrt, [-1.0]))


def test_what_tasks_share_is_made_once_in_a_process(each: Map) -> None:
    shared = Carried([0])
    found = list(each(partial(_count, shared), range(6)))
    assert found.count(1) <= 2 and max(found) >= 3


def _count(shared: Carried[list[int]], _: int) -> int:
    shared.value[0] += 1
    return shared.value[0]


def test_workers_of_a_fit_without_samples_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = simphys("optimize", write(tmp_path), "--workers", "2")
    assert refused.exit_code == 2 and "a fit shares the samples of optimizer.smoothing" in refused.stderr
    with open_map(1) as made:
        assert made is map
