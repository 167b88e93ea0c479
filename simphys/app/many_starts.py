"""The job `multistart`: a fit from many starts at once, or by differential evolution, and the optima that they find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from simphys.assess import estimate_noise
from simphys.assess.chi_square import unit_of_chi_square
from simphys.assess.clusters import ManyStarts, judge_clusters, sort_ends
from simphys.assess.draws import Draw, draw_starts
from simphys.autograd.errors import InputError
from simphys.experiment.lockstep import Lockstep
from simphys.experiment.objective import SceneObjective
from simphys.experiment.scene import Scene
from simphys.optimize.horizon import FIRST_FRACTION, RESIDUALS_PER_UNKNOWN
from simphys.optimize.lockstep import Batched, Ends, minimize_from_many
from simphys.optimize.mapping import Map
from simphys.runs.judgement import write_judgement
from simphys.runs.run_files import open_recorder

from .identification import Identification
from .workflow import identify

Array = np.ndarray[Any, Any]
Search = Literal["least_squares", "differential_evolution"]

GENERATIONS = 60
"""Largest number of generations of differential evolution; gradients then finish the search."""
FINISHED = 8
"""Number of its best points from which gradients go on."""


def fit_from_many(
    scene: Scene,
    *,
    folder: str | Path,
    starts: int = 64,
    search: Search = "least_squares",
    draw: Draw | str = "sobol",
    overwrite: bool = False,
    on_progress: Callable[[str], None] | None = None,
    each: Map = map,
) -> tuple[Identification, ManyStarts]:
    """Fit a scene from many starts, within its bounds or 30 % around its own or from priors; record the best fit.

    Least squares goes from all starts in lockstep, as one batch where the simulator allows. Differential evolution is
    scipy's, of a population of `starts`; least squares then goes on from its best points. The first start is that of
    the scene, others are drawn by `draw`, one of assess/draws.py. `each` computes parts of the batches, see
    `mapping.map_on`.
    Errors: those of `identify` and `draw_starts`; InputError for a scene without a measurement or residuals.
    """
    tell = on_progress or (lambda line: None)
    _require_residuals(scene, scene.objective())
    scene = estimate_noise(scene)
    objective = scene.objective()
    drawn = draw_starts(objective, starts, scene.config.runtime.seed, draw)
    drawn[0] = objective.start
    if search == "differential_evolution":
        drawn = _evolve(objective, drawn, tell, each)
    ends = _minimize(objective, drawn, tell, each, growing=search == "least_squares")
    if not np.isfinite(ends.loss).any():
        remedy = "Choose closer bounds, or a smaller time step."
        raise InputError("multistart", "a start must give a finite motion", f"none of {starts}", remedy)
    tell("the best fit")
    best = ends.theta[int(np.argmin(ends.loss))]
    fit = identify(scene, folder=folder, overwrite=overwrite, start=best)
    errors = np.full(best.size, np.nan) if fit.uncertainty is None else fit.uncertainty.standard.values
    unit = unit_of_chi_square(scene, float(ends.loss.min()), best.size)
    found = sort_ends(drawn, ends.theta, ends.loss, errors, unit)
    criteria = (*fit.criteria, judge_clusters(found))
    with open_recorder(scene, folder, kind="optimize", overwrite=False, resume=True) as recorder:
        write_judgement(recorder, criteria, fit.uncertainty)
        about = {"labels": objective.labels, "search": search, "draw": draw, "motions": ends.motions}
        recorder.write(
            "many_starts",
            attrs=about,
            start=found.start,
            theta=found.theta,
            loss=found.loss,
            cluster=found.cluster,
            error=errors,
        )
    return replace(fit, criteria=criteria, recording=recorder.recording), found


def cluster_rows(objective: SceneObjective[Any], found: ManyStarts) -> list[tuple[str, ...]]:
    """Format the optima: number of starts that end there, chi^2, and the values."""
    rows: list[tuple[str, ...]] = []
    for number, own in enumerate(found.clusters):
        values = objective.unknowns.natural(found.theta[own[0]])
        shown = ", ".join([f"{value:.5g}" for value in values[:8]]) + (", ..." if values.size > 8 else "")
        rows.append((str(number + 1), str(len(own)), f"{2 * found.loss[own].min():.6g}", shown))
    failed = int(np.sum(found.cluster < 0))
    return rows + ([("-", str(failed), "not finite", "")] if failed else [])


def _require_residuals(scene: Scene, objective: SceneObjective[Any]) -> None:
    if not scene.measured or not objective.has_residuals or scene.config.optimizer.smoothing is not None:
        remedy = "Fit it by simphys optimize."
        raise InputError("multistart", "needs residuals of a measurement", "none", remedy)
    if scene.members is not None:
        remedy = "Write members as [[experiments]]."
        raise InputError("multistart", "needs a scene of one member", f"{scene.members} members", remedy)


def _minimize(
    objective: SceneObjective[Any], starts: Array, tell: Callable[[str], None], each: Map, *, growing: bool
) -> Ends:
    fractions = [1.0]
    if growing and objective.scene.config.optimizer.horizon == "growing":
        first = FIRST_FRACTION
        enough = RESIDUALS_PER_UNKNOWN * objective.start.size
        while first < 1 and objective.until(first).residuals(objective.start).size < enough:
            first *= 2
        fractions = [first * 2**k for k in range(20) if first * 2**k < 1] + [1.0]
    stages: list[Batched] = [Lockstep(objective if part == 1 else objective.until(part), each) for part in fractions]
    chosen = objective.scene.config.optimizer

    def on_iteration(stage: int, losses: Array) -> None:
        tell(f"{len(losses)} starts on {fractions[stage]:.3g} of the horizon, best loss {np.min(losses):.6g}")

    return minimize_from_many(
        stages,
        starts,
        objective.lower,
        objective.upper,
        iterations=chosen.iterations,
        tolerance=max(chosen.tolerance, 1e-8),
        on_iteration=on_iteration,
    )


def _evolve(objective: SceneObjective[Any], starts: Array, tell: Callable[[str], None], each: Map) -> Array:
    """Return the best points of scipy's differential evolution, whose generations are batches."""
    from scipy.optimize import differential_evolution

    together, generation = Lockstep(objective, each), 0
    low, high = starts.min(axis=0), starts.max(axis=0)
    both = np.isfinite(objective.lower) & np.isfinite(objective.upper)
    bounds = np.where(both, objective.lower, low), np.where(both, objective.upper, high)

    def losses(points: Array) -> Array:
        found = together.residuals(np.ascontiguousarray(points.T))
        with np.errstate(over="ignore"):
            squares = 0.5 * (found**2).sum(axis=1)
        return np.where(np.isfinite(squares), squares, 1e300)

    def on_generation(intermediate_result: Any) -> None:
        nonlocal generation
        generation += 1
        tell(f"generation {generation}, best loss {float(intermediate_result.fun):.6g}")

    end = differential_evolution(
        losses,
        list(zip(*bounds, strict=True)),
        init=np.clip(starts, *bounds),
        maxiter=GENERATIONS,
        vectorized=True,
        updating="deferred",
        polish=False,
        rng=objective.scene.config.runtime.seed,
        callback=on_generation,
    )
    best = np.argsort(end.population_energies)[:FINISHED]
    return np.asarray(end.population[best])
