"""The job `intervals`: a fit with intervals by the profile likelihood, which need not be symmetric."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from simphys.assess import Criterion, estimate_noise, heed_failure
from simphys.assess.quality import doubt_widths, factors_if_correlated
from simphys.experiment.scene import Scene
from simphys.optimize.likelihood import profile_intervals, require_iminuit
from simphys.optimize.mapping import Map
from simphys.runs.judgement import write_judgement
from simphys.runs.run_files import open_recorder

from .identification import Identification
from .workflow import fit_with_errors


@dataclass(frozen=True)
class Interval:
    """Interval of an unknown, of the confidence of one standard error (68 %), in its unit."""

    label: str
    unit: str
    value: float
    standard_error: float
    below: float
    """Distance of the lower end, negative; NaN where there is none."""
    above: float
    factor: float = 1.0
    """Factor by which the interval is too small, as residuals are correlated; 1 if they are not."""


def find_intervals(
    scene: Scene,
    *,
    folder: str | Path,
    overwrite: bool = False,
    on_progress: Callable[[str], None] | None = None,
    each: Map = map,
) -> tuple[Identification, tuple[Interval, ...]]:
    """Fit a scene and find the interval of each unknown, recorded as `intervals` in `folder`.

    `each` computes the profiles, see `mapping.map_on`.
    Errors: those of `identify`; InputError for a fit without standard errors, or without iminuit.
    """
    tell = on_progress or (lambda line: None)
    require_iminuit()  # before the work of the fit
    tell("the fit")
    scene = estimate_noise(scene)
    fit, uncertainty = fit_with_errors("intervals", scene, folder=folder, overwrite=overwrite)
    tell("profiles of the likelihood")
    objective, standard = scene.objective(), uncertainty.standard
    factors, criteria = factors_if_correlated(uncertainty), fit.criteria
    if doubt := doubt_widths(uncertainty):
        remedy = 'Believe the intervals "if correlated".'
        own = Criterion("intervals", float(factors.max()), "doubtful", doubt, remedy)
        criteria = tuple(heed_failure([*criteria, own]))
    found = profile_intervals(objective, fit.result.theta, standard.values, standard.sigma, each=each)
    natural = objective.unknowns.natural
    base = natural(found.theta)
    rows = []
    for place, row in enumerate(fit.unknowns):
        ends = []
        for side in (found.below, found.above):
            moved = found.theta.copy()
            moved[place] += side[place]
            ends.append(float(natural(moved)[place] - base[place]) if np.isfinite(side[place]) else math.nan)
        numbers = float(base[place]), row.standard_error, min(ends), max(ends), float(factors[place])
        rows.append(Interval(row.label, row.unit, *numbers))
    with open_recorder(scene, folder, kind="optimize", overwrite=False, resume=True) as recorder:
        write_judgement(recorder, criteria, uncertainty)
        recorder.write(
            "intervals",
            attrs={"evaluations": found.evaluations},
            label=[row.label for row in rows],
            value=[row.value for row in rows],
            below=[row.below for row in rows],
            above=[row.above for row in rows],
            factor_if_correlated=factors,
        )
    return replace(fit, criteria=criteria, recording=recorder.recording), tuple(rows)
