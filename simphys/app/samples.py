"""The job `sample`: a fit, and samples of the posterior of its unknowns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from simphys.assess import Criterion, estimate_noise, heed_failure
from simphys.assess.bands import sample_bands
from simphys.assess.quality import doubt_widths, factors_if_correlated
from simphys.experiment.scene import Scene
from simphys.optimize.posterior import Posterior, load_pints, sample_posterior
from simphys.runs.judgement import write_judgement
from simphys.runs.run_files import open_recorder, recorders_of_parts

from .identification import Identification
from .workflow import fit_with_errors

MIXED, ENOUGH = 1.05, 100
"""Largest R-hat, and least effective number of samples, that one can rely on."""
LINEAR = 0.3
"""Relative difference of the posterior's width from the standard error, beyond which that one misleads."""


def sample_scene(
    scene: Scene,
    *,
    folder: str | Path,
    draws: int = 250,
    overwrite: bool = False,
    on_progress: Callable[[str], None] | None = None,
) -> tuple[Identification, Posterior]:
    """Fit a scene, and draw samples of the posterior, recorded as `posterior` in `folder`, with what they predict.

    Errors: those of `identify`; InputError for a fit without standard errors, or without PINTS.
    """
    tell = on_progress or (lambda line: None)
    load_pints()  # before the work of the fit
    tell("the fit")
    scene = estimate_noise(scene)
    fit, uncertainty = fit_with_errors("sample", scene, folder=folder, overwrite=overwrite)
    standard, objective = uncertainty.standard, scene.objective()
    found = sample_posterior(
        objective,
        fit.result.theta,
        standard.covariance,
        standard.sigma,
        draws=draws,
        seed=scene.config.runtime.seed,
        on_draw=lambda done, whole: tell(f"posterior, draw {done}/{whole}"),
    )
    criteria = tuple(heed_failure([*fit.criteria, judge_samples(found, fit)]))
    natural = np.array([[objective.unknowns.natural(theta) for theta in chain] for chain in found.theta])
    tell("predictions of the samples")
    bands = sample_bands(objective, found.flat)
    with open_recorder(scene, folder, kind="optimize", overwrite=False, resume=True) as recorder:
        write_judgement(recorder, criteria, uncertainty)
        about = {"labels": objective.labels, "divergences": found.divergences, "gradients": found.gradients}
        recorder.write(
            "posterior",
            attrs={**about, "units": objective.unknowns.units},
            value=natural,
            rhat=found.rhat,
            effective=found.effective,
            best=[row.value for row in fit.unknowns],
            standard_error=[row.standard_error for row in fit.unknowns],
            factor_if_correlated=factors_if_correlated(uncertainty),
        )
        for own, part in recorders_of_parts(recorder, scene):
            if part.name in bands:
                lower, upper = bands[part.name]
                own.write("sampled_bands", lower=lower, upper=upper)
    return replace(fit, criteria=criteria, recording=recorder.recording), found


def judge_samples(found: Posterior, fit: Identification) -> Criterion:
    """Judge whether the chains have mixed, and whether the posterior is as wide as the errors say."""
    labels = [row.label for row in fit.unknowns]
    assert fit.uncertainty is not None
    ratio = found.flat.std(axis=0) / fit.uncertainty.standard.values
    worst, least = int(np.argmax(found.rhat)), int(np.argmin(found.effective))
    words = f"R-hat up to {found.rhat[worst]:.3f} ({labels[worst]}), {found.effective[least]:.0f} effective samples"
    words += f" at least, {found.divergences} divergences"
    if doubt := doubt_widths(fit.uncertainty):
        words += f"; {doubt}"
    if found.rhat[worst] > MIXED or found.effective[least] < ENOUGH or found.divergences:
        remedy = "Draw more samples (--draws), or give unknowns bounds or a log transform."
        return Criterion("posterior", float(found.rhat[worst]), "doubtful", words, remedy)
    place = int(np.argmax(np.abs(np.log(ratio))))
    words += f"; widths are {ratio.min():.2f} to {ratio.max():.2f} standard errors"
    if doubt:
        factor = float(factors_if_correlated(fit.uncertainty).max())
        return Criterion("posterior", factor, "doubtful", words, 'Believe the widths "if correlated".')
    if abs(ratio[place] - 1) > LINEAR:
        remedy = f"Believe the samples, in place of the standard error of {labels[place]}."
        return Criterion("posterior", float(ratio[place]), "doubtful", words, remedy)
    return Criterion("posterior", float(found.rhat[worst]), "passed", words)


def sample_rows(fit: Identification, found: Posterior) -> list[tuple[str, ...]]:
    """Format mean, width and 95 % interval of each unknown, with R-hat and effective samples.

    Beside its width stands the one that allows for correlated residuals.
    """
    assert fit.uncertainty is not None
    factors = factors_if_correlated(fit.uncertainty)
    natural = fit.recording["posterior/value"].reshape(-1, len(fit.unknowns))
    rows: list[tuple[str, ...]] = []
    for place, row in enumerate(fit.unknowns):
        own = natural[:, place]
        low, high = np.percentile(own, [2.5, 97.5])
        widths = own.std() * np.array([1.0, factors[place]])
        numbers = [f"{own.mean():.6g}", *[f"{each:.3g}" for each in (*widths, row.standard_error)]]
        between = f"{low:.6g} to {high:.6g}"
        rows.append(
            (row.label, row.unit, *numbers, between, f"{found.rhat[place]:.3f}", f"{found.effective[place]:.0f}")
        )
    return rows
