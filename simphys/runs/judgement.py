"""The judgement of a fit, recorded: criteria, covariances, autocorrelation of the residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from simphys.assess import Criterion, Uncertainty, worst
from simphys.assess.misfit import chi_square_per_freedom, misfit_in_sigmas
from simphys.assess.quality import whiteness_of_channels
from simphys.optimize.correlation import LAGS
from simphys.record import RunRecorder

from .results import renew_verdict


def write_judgement(recorder: RunRecorder, criteria: Sequence[Criterion], uncertainty: Uncertainty | None) -> None:
    """Record the verdict with its criteria in `judgement`, covariances in `covariance`, tests in `residual_tests`.

    The files of a fit that lie there tell the verdict, too.
    """
    columns = {name: [getattr(each, name) for each in criteria] for name in ("name", "verdict", "found", "remedy")}
    texts: dict[str, Any] = columns
    recorder.write("judgement", attrs={"verdict": worst(criteria)}, value=[each.value for each in criteria], **texts)
    if recorder.folder is not None:
        renew_verdict(recorder.folder, criteria)
    if uncertainty is None:
        return
    standard, robust = uncertainty.standard.covariance, uncertainty.robust_covariance
    recorder.write(
        "covariance",
        attrs={"labels": list(uncertainty.labels), "condition": uncertainty.standard.condition},
        standard=uncertainty.in_units(standard),
        robust=uncertainty.in_units(robust),
        correlation=uncertainty.correlations,
    )
    misfits, tests = misfit_in_sigmas(uncertainty), whiteness_of_channels(uncertainty)
    correlations = np.stack([_pad(test.autocorrelation) for test in tests.values()])
    holdout = {} if uncertainty.holdout is None else {f"holdout_{n}": v for n, v in asdict(uncertainty.holdout).items()}
    recorder.write(
        "residual_tests",
        attrs={"chi_square_per_degree_of_freedom": chi_square_per_freedom(uncertainty), **holdout},
        channel=list(misfits),
        rmse_per_sigma=list(misfits.values()),
        p_value=[test.p_value for test in tests.values()],
        autocorrelation=correlations,
    )


def _pad(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, np.full(LAGS + 1 - values.size, np.nan)])
