"""Commands that fit a scene's unknowns, and judge fits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simphys.app import late
from simphys.app.command import command, leave, stop_if_interrupted

from .arguments import KEEP_SEGMENTS, STATUS, Overrides, Overwrite, Report, Resume, SceneFile, Workers

if TYPE_CHECKING:
    from simphys.optimize import IterationRecord


@contextmanager
def _drawing(folder: Path) -> Iterator[None]:
    """Say at Ctrl-C that the fit is complete, and how its pictures are drawn later."""
    try:
        yield
    except KeyboardInterrupt as stop:
        leave(stop, f"Interrupted. The fit is complete: `simphys plot {folder}` draws it.", 130)


@command
def optimize(
    scene: SceneFile,
    overrides: Overrides = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    with_report: Report = False,
    workers: Workers = None,
) -> None:
    """Identify the scene's unknowns; record the fit and draw it."""
    loaded = late.scene.load_scene(scene, overrides or ())
    folder = Path(loaded.config.output.folder)
    if workers is not None:
        late.workflow.require_samples(loaded)
    late.report.print_doubts(loaded)
    try:
        with (
            late.report.FitProgress(loaded.config.optimizer.iterations) as progress,
            late.mapping.open_map(workers) as each,
        ):

            def on_iteration(record: IterationRecord) -> None:
                progress.update(record)
                stop_if_interrupted()

            fit = late.workflow.identify(
                loaded, folder=folder, overwrite=overwrite, resume=resume, on_iteration=on_iteration, each=each
            )
    except late.identification.IdentificationInterrupted as stop:
        late.report.print_identification(stop.identification)
        message = f"The evaluations so far are recorded in {folder}: --resume continues. {KEEP_SEGMENTS}"
        leave(stop, message, 130)
    except KeyboardInterrupt as stop:  # before the first evaluation, or after the last one
        leave(stop, f"Interrupted. What there is of the fit is recorded in {folder}: --resume continues.", 130)
    late.report.print_identification(fit)
    with _drawing(folder):
        pictures = late.plot.all_figures(fit.recording, folder)
        if with_report:
            pictures.append(late.page.write_report(fit.recording))
    late.report.print_files(folder, pictures)
    if fit.verdict != "passed":
        raise typer.Exit(STATUS[fit.verdict])


@command
def assess(
    scene: Annotated[Path, typer.Argument(metavar="SCENE|RUN", help="A scene file, or the folder of a recorded fit.")],
    overrides: Overrides = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    seconds: Annotated[
        float, typer.Option("--seconds", help="Budget of time for starts and recovery, or a map of errors.", min=1)
    ] = 60.0,
    with_report: Report = False,
    workers: Workers = None,
) -> None:
    """Fit the scene and judge whether one can believe the fit, by checks before and after, other starts, recovery."""
    loaded = late.assessment.load_scene_or_run(scene, tuple(overrides or ()))
    folder = Path(f"{loaded.config.output.folder}_assessed")

    def on_progress(line: str, until: float | None) -> None:
        progress.show(line, until=until)
        stop_if_interrupted()

    def on_iteration(record: IterationRecord) -> None:
        progress.update(record)
        stop_if_interrupted()

    try:
        with (
            late.report.FitProgress(loaded.config.optimizer.iterations) as progress,
            late.mapping.open_map(workers) as each,
        ):
            found = late.assessment.assess(
                loaded,
                folder=folder,
                overwrite=overwrite,
                resume=resume,
                seconds=seconds,
                on_progress=on_progress,
                on_iteration=on_iteration,
                each=each,
            )
    except KeyboardInterrupt as stop:
        leave(stop, f"Interrupted. What there is of the fit is recorded in {folder}: --resume continues.", 130)
    late.report.print_identification(found)
    pictures = []
    with _drawing(folder):
        with suppress(late.plot.NotRecorded):  # there is no motion where a check before the fit failed
            pictures = late.plot.all_figures(found.recording, folder)
        if with_report:
            pictures.append(late.page.write_report(found.recording))
    late.report.print_files(folder, pictures)
    if found.verdict != "passed":
        raise typer.Exit(STATUS[found.verdict])


@command
def check_fit(scene: SceneFile, overrides: Overrides = None) -> None:
    """Check a fit before it is made: unknowns, starts, time steps, errors to expect, memory, disk and time."""
    found = late.fit_check.check_fit(late.scene.load_scene(scene, overrides or ()))
    late.report.print_expectations(found.expectations)
    for line in late.report.format_criteria(found.criteria):
        typer.echo(line)
    if (verdict := late.assess.worst(found.criteria)) != "passed":
        raise typer.Exit(STATUS[verdict])


@command
def recover(
    scene: SceneFile,
    overrides: Overrides = None,
    overwrite: Overwrite = False,
    times: Annotated[int, typer.Option("--times", help="Number of simulated recordings that are fitted.", min=5)] = 20,
    workers: Workers = None,
) -> None:
    """Fit the scene, simulate recordings with the found values, and fit these: bias and coverage of the errors."""
    loaded = late.scene.load_scene(scene, overrides or ())
    folder = Path(f"{loaded.config.output.folder}_recovered")

    def on_progress(line: str, until: float | None) -> None:
        progress.show(line, until=until)
        stop_if_interrupted()

    with (
        late.report.FitProgress(loaded.config.optimizer.iterations) as progress,
        late.mapping.open_map(workers) as each,
    ):
        fit, found = late.fit_check.recover_scene(
            loaded, folder=folder, times=times, overwrite=overwrite, on_progress=on_progress, each=each
        )
    heads = ("unknown", "unit", "true value", "bias [standard errors]", "scatter", "intervals of 95 % that hold it")
    late.report.print_table(f"{times} recoveries", heads, late.fit_check.recovery_rows(fit, found), (2, 3, 4, 5))
    for line in late.report.format_criteria(fit.criteria):
        typer.echo(line)
    late.report.print_files(folder, late.plot.all_figures(fit.recording, folder))
    if fit.verdict != "passed":
        raise typer.Exit(STATUS[fit.verdict])


@command
def multistart(
    scene: SceneFile,
    overrides: Overrides = None,
    overwrite: Overwrite = False,
    starts: Annotated[int, typer.Option("--starts", help="Number of starts, or of the population.", min=5)] = 64,
    evolve: Annotated[
        bool, typer.Option("--evolve", help="Search by differential evolution before least squares.")
    ] = False,
    draw: Annotated[
        str, typer.Option("--draw", help="sobol or latin_hypercube, from the bounds; prior, where unknowns have one.")
    ] = "sobol",
    workers: Workers = None,
) -> None:
    """Fit the scene from many starts at once, and show the optima that they find; record the best fit."""
    loaded = late.scene.load_scene(scene, overrides or ())
    folder = Path(f"{loaded.config.output.folder}_multistart")

    def on_progress(line: str) -> None:
        progress.show(line)
        stop_if_interrupted()

    with (
        late.report.FitProgress(loaded.config.optimizer.iterations) as progress,
        late.mapping.open_map(workers) as each,
    ):
        fit, found = late.many_starts.fit_from_many(
            loaded,
            folder=folder,
            starts=starts,
            search="differential_evolution" if evolve else "least_squares",
            draw=draw,
            overwrite=overwrite,
            on_progress=on_progress,
            each=each,
        )
    late.report.print_identification(fit)
    heads = ("optimum", "starts", "chi^2", ", ".join([row.label for row in fit.unknowns[:8]]))
    late.report.print_table(
        f"optima of {len(found.loss)} starts",
        heads,
        late.many_starts.cluster_rows(loaded.objective(), found),
        (0, 1, 2),
    )
    late.report.print_files(folder, late.plot.all_figures(fit.recording, folder))
    if fit.verdict != "passed":
        raise typer.Exit(STATUS[fit.verdict])


@command
def intervals(
    scene: SceneFile, overrides: Overrides = None, overwrite: Overwrite = False, workers: Workers = None
) -> None:
    """Fit the scene, and find intervals by the profile likelihood, which need not be symmetric (extra `intervals`)."""
    loaded = late.scene.load_scene(scene, overrides or ())
    folder = Path(f"{loaded.config.output.folder}_intervals")
    with (
        late.report.FitProgress(loaded.config.optimizer.iterations) as progress,
        late.mapping.open_map(workers) as each,
    ):
        fit, found = late.intervals.find_intervals(
            loaded, folder=folder, overwrite=overwrite, on_progress=progress.show, each=each
        )
    late.report.print_intervals(found)
    for line in late.report.format_criteria(fit.criteria):
        typer.echo(line)
    late.report.print_files(folder, late.plot.all_figures(fit.recording, folder))
    if fit.verdict != "passed":
        raise typer.Exit(STATUS[fit.verdict])


@command
def sample(
    scene: SceneFile,
    overrides: Overrides = None,
    overwrite: Overwrite = False,
    draws: Annotated[int, typer.Option("--draws", help="Number of draws of each of 4 chains.", min=20)] = 250,
) -> None:
    """Fit the scene, and sample the posterior of its unknowns by NUTS (extra `bayes`)."""
    loaded = late.scene.load_scene(scene, overrides or ())
    folder = Path(f"{loaded.config.output.folder}_sampled")

    def on_progress(line: str) -> None:
        progress.show(line)
        stop_if_interrupted()

    with late.report.FitProgress(loaded.config.optimizer.iterations) as progress:
        fit, found = late.samples.sample_scene(
            loaded, folder=folder, draws=draws, overwrite=overwrite, on_progress=on_progress
        )
    heads = ("unknown", "unit", "mean", "width", "if correlated", "standard error", "95 %", "R-hat", "effective")
    title = f"posterior, {found.theta.shape[0]} chains of {found.theta.shape[1]} draws, {found.gradients} gradients"
    late.report.print_table(title, heads, late.samples.sample_rows(fit, found), (2, 3, 4, 5, 7, 8))
    for line in late.report.format_criteria(fit.criteria):
        typer.echo(line)
    late.report.print_files(folder, late.plot.all_figures(fit.recording, folder))
    if fit.verdict != "passed":
        raise typer.Exit(STATUS[fit.verdict])


@command
def design(
    scene: SceneFile,
    overrides: Overrides = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the ranking in the output folder; a run there stays.")
    ] = False,
) -> None:
    """Rank further sensors, recordings and times by what they would tell about the unknowns, at their start values."""
    loaded = late.scene.load_scene(scene, overrides or ())
    if not overwrite:
        late.next_experiment.require_no_design(loaded)
    found = late.next_experiment.design_scene(loaded)
    now = zip(found.labels, found.units, found.now.errors, strict=True)
    rows = [(label, unit, late.next_experiment.format_error(error)) for label, unit, error in now]
    late.report.print_table(
        "errors to expect of the experiment as it is", ("unknown", "unit", "standard error"), rows, (2,)
    )
    heads = ("change", "log det", "errors times", "least gain")
    late.report.print_table("changes, the best first", heads, late.next_experiment.option_rows(found), (1, 2))
    late.report.print_files(*late.next_experiment.write_design(loaded, found, overwrite=overwrite))
