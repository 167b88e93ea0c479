"""Commands that simulate a scene, prove its gradient, and run it with many values."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from simphys.app import late
from simphys.app.command import command, leave, stop_if_interrupted
from simphys.app.compiler import choose_compiler_of_sweep

from .arguments import KEEP_SEGMENTS, Overrides, Overwrite, Report, SceneFile, Workers


@command
def run(
    scene: SceneFile, overrides: Overrides = None, overwrite: Overwrite = False, with_report: Report = False
) -> None:
    """Simulate the scene, record the motion and draw it."""
    loaded = late.scene.load_scene(scene, overrides or ())
    folder = Path(loaded.config.output.folder)
    try:
        with late.report.RunProgress(loaded.dt, loaded.units.time) as progress:

            def on_progress(step: int, steps: int) -> None:
                progress.update(step, steps)
                stop_if_interrupted()

            recording = late.workflow.simulate(loaded, folder=folder, overwrite=overwrite, on_progress=on_progress)
    except KeyboardInterrupt as stop:
        message = f"Interrupted. The motion so far is recorded: `simphys plot {folder}` draws it. {KEEP_SEGMENTS}"
        leave(stop, message, 130)
    pictures = late.plot.all_figures(recording, folder)
    if with_report:
        pictures.append(late.page.write_report(recording))
    late.report.print_files(folder, pictures)


@command
def check(
    scene: SceneFile,
    overrides: Overrides = None,
    save: Annotated[
        bool, typer.Option("--save", help="Write certificate.txt to the output folder, for `simphys report`.")
    ] = False,
    workers: Workers = None,
) -> None:
    """Prove the gradient of this scene in all modes, in f64 and over its full horizon."""
    with late.mapping.open_map(workers) as each:
        certificate = late.report.prove(scene, overrides or (), partial(late.certificates.check_file, each=each))
    typer.echo(str(certificate))
    if save:
        late.report.save_certificate(certificate, scene, overrides or ())
    if not certificate.passed:
        raise typer.Exit(1)


@command
def health(scene: SceneFile, overrides: Overrides = None) -> None:
    """Measure how the scene's adjoint grows or fades backward in time, and over which horizon it is usable."""
    loaded = late.scene.load_scene(scene, overrides or ())
    faults = 0
    for part in loaded.parts:
        found = late.health.scene_health(part)
        late.health_report.print_health(
            found, title=f"{loaded.config.title}, {part.name}" if part.name else loaded.config.title
        )
        late.report.print_files(*late.health_report.write_health(part, found))
        faults += found.fault is not None
    if faults:
        raise typer.Exit(1)


@command
def graph(scene: SceneFile, overrides: Overrides = None) -> None:
    """Show the autograd graph of one step, as text and as a picture in the output folder."""
    loaded = late.scene.load_scene(scene, overrides or ())
    text, picture = late.step_graph.draw_step(loaded)
    typer.echo(text)
    late.report.print_files(picture.parent, [picture])


@command
def kernels(
    scene: SceneFile,
    overrides: Overrides = None,
    form: Annotated[
        str,
        typer.Option("--form", help="time, launches; gpu-time, gpu-launches, gpu-blocks, even without a GPU."),
    ] = "auto",
) -> None:
    """Show the kernels generated from the scene's step: forward, adjoint and tangent, as Python with comments."""
    loaded = late.scene.load_scene(scene, overrides or ())
    late.report.print_python(late.kernel_text.write_kernels(loaded, form))


@command
def sweep(
    file: Annotated[Path, typer.Argument(metavar="SWEEP", help="A sweep file (TOML).")],
    workers: Annotated[int | None, typer.Option(min=1, help="Number of workers, in place of the file's.")] = None,
    collect: Annotated[bool, typer.Option("--collect", help="Only make the table of what there is.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell how many members there are.")] = False,
) -> None:
    """Run a scene with many values; run again, it does what is missing."""
    choose_compiler_of_sweep(file)
    try:
        whole = late.sweep_report.print_sweep(
            file, workers=workers, collect=collect, dry_run=dry_run, stop=stop_if_interrupted
        )
    except KeyboardInterrupt as stop:
        leave(stop, "Interrupted. Run the same command again: it does what is missing.", 130)
    if not whole:
        raise typer.Exit(1)
