"""The command `simphys`.

Exit status: 0 success; 1 a failed proof, a fit that did not converge, a gradient that is not finite, a full disk, too
little memory; 2 invalid input; 130 Ctrl-C.
"""

from __future__ import annotations

import functools
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simphys._version import __version__

if TYPE_CHECKING:
    from simphys.optimize import IterationRecord

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Differentiable physics: simulate scenes, identify their parameters, prove their gradients.",
)

SceneFile = Annotated[Path, typer.Argument(metavar="SCENE", help="A scene file (TOML).")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Overrides, such as material.stiffness=5e3.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in the output folder.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the interrupted run in the output folder.")]


KEEP_SEGMENTS = "Its data lie in segments/ beside run.h5: copy or move the whole folder."

_debug = False
_interrupted = False
"""True after Ctrl-C: a library may swallow the KeyboardInterrupt, or turn it into an error of its own."""


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command whose errors become messages and exit statuses, with a traceback only under --debug."""

    @functools.wraps(function)
    def guarded(*arguments: Any, **options: Any) -> None:
        from simphys.autograd.errors import InputError, StorageError

        try:
            function(*arguments, **options)
        except InputError as error:
            _exit(error, str(error), 2)
        except StorageError as error:
            _exit(error, str(error), 1)
        except MemoryError as error:
            _exit(error, f"Not enough memory: {error}. Simulate fewer steps or nodes.", 1)
        except KeyboardInterrupt as error:
            _exit(error, "Interrupted.", 130)
        except typer.Exit:
            raise
        except Exception as error:
            if not _interrupted:
                raise
            _exit(error, "Interrupted.", 130)

    return app.command()(guarded)


def _remember_interrupt(number: int, frame: FrameType | None) -> None:
    global _interrupted
    _interrupted = True
    signal.default_int_handler(number, frame)


def _ignore_lost_interrupts(lost: sys.UnraisableHookArgs) -> None:
    """Print nothing for an interrupt within a callback of the interpreter: it is remembered, and raised later."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def _stop_if_interrupted() -> None:
    if _interrupted:
        raise KeyboardInterrupt


def _exit(error: BaseException, message: str, status: int) -> None:
    if _debug:
        traceback.print_exception(error)
    else:
        typer.echo(message, err=True)
    raise typer.Exit(status)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simphys {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Simulate scenes, identify their parameters from recordings, and prove their gradients."""
    global _debug
    _debug = debug


@command
def optimize(
    scene: SceneFile, overrides: Overrides = None, overwrite: Overwrite = False, resume: Resume = False
) -> None:
    """Identify the scene's unknowns; record the fit and draw it."""
    from simphys.experiment.scene import load_scene

    from . import report
    from .workflow import IdentificationInterrupted, identify

    loaded = load_scene(scene, overrides or ())
    folder = Path(loaded.config.output.folder)
    try:
        with report.FitProgress(loaded.config.optimizer.iterations) as progress:

            def on_iteration(record: IterationRecord) -> None:
                progress.update(record)
                _stop_if_interrupted()

            fit = identify(loaded, folder=folder, overwrite=overwrite, resume=resume, on_iteration=on_iteration)
    except IdentificationInterrupted as stop:
        report.print_identification(stop.identification)
        message = f"The evaluations so far are recorded in {folder}: --resume continues. {KEEP_SEGMENTS}"
        _exit(stop, message, 130)
    from simphys.plot import all_figures  # matplotlib takes a second, by which the fit begins earlier

    pictures = all_figures(fit.recording, folder)
    report.print_identification(fit)
    report.print_files(folder, pictures)
    if not fit.result.success:
        raise typer.Exit(1)


@command
def run(scene: SceneFile, overrides: Overrides = None, overwrite: Overwrite = False) -> None:
    """Simulate the scene, record the motion and draw it."""
    from simphys.experiment.scene import load_scene

    from . import report
    from .workflow import simulate

    loaded = load_scene(scene, overrides or ())
    folder = Path(loaded.config.output.folder)
    try:
        with report.RunProgress(loaded.dt) as progress:

            def on_progress(step: int, steps: int) -> None:
                progress.update(step, steps)
                _stop_if_interrupted()

            recording = simulate(loaded, folder=folder, overwrite=overwrite, on_progress=on_progress)
    except KeyboardInterrupt as stop:
        message = f"Interrupted. The motion so far is recorded: `simphys plot {folder}` draws it. {KEEP_SEGMENTS}"
        _exit(stop, message, 130)
    from simphys.plot import all_figures

    report.print_files(folder, all_figures(recording, folder))


@command
def check(scene: SceneFile, overrides: Overrides = None) -> None:
    """Prove the gradient of this scene in all modes, in f64 and over its full horizon."""
    from simphys.diagnose.check.scene import check_file

    from . import report

    certificate = report.prove(scene, overrides or (), check_file)
    typer.echo(str(certificate))
    if not certificate.passed:
        raise typer.Exit(1)


@command
def health(scene: SceneFile, overrides: Overrides = None) -> None:
    """Measure how the scene's adjoint grows or fades backward in time, and over which horizon it is usable."""
    from simphys.diagnose.health import scene_health
    from simphys.experiment.scene import load_scene

    from . import report
    from .health_report import print_health, write_health

    loaded = load_scene(scene, overrides or ())
    found = scene_health(loaded)
    print_health(found, title=loaded.config.title)
    report.print_files(*write_health(loaded, found))
    if found.fault is not None:
        raise typer.Exit(1)


@command
def plot(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a run.h5 that was moved.")],
) -> None:
    """Draw the pictures of a recorded run again."""
    from simphys.plot import all_figures
    from simphys.record import Recording

    from . import report

    recording = Recording(run)
    folder = recording.folder or run
    report.print_files(folder, all_figures(recording, folder))


@command
def graph(scene: SceneFile, overrides: Overrides = None) -> None:
    """Show the autograd graph of one step, as text and as a picture in the output folder."""
    from simphys.experiment.scene import load_scene

    from . import report
    from .step_graph import draw_step

    loaded = load_scene(scene, overrides or ())
    text, picture = draw_step(loaded)
    typer.echo(text)
    report.print_files(picture.parent, [picture])


@command
def info(
    scene: Annotated[Path | None, typer.Argument(metavar="SCENE", help="Show the settings of this scene.")] = None,
) -> None:
    """Show arch, compiler, precision, threads and versions."""
    from simphys.autograd import runtime

    if scene is not None:
        from simphys.experiment.scene import load_scene

        load_scene(scene)
    found = {name: "yes" if runtime.available(name) else "no" for name in runtime.ARCHS}
    versions = {name: metadata.version(name) for name in ("scipy", "h5py", "matplotlib", "pydantic")}
    present = {f"{name} here": value for name, value in found.items()}
    for name, value in {"simphys": __version__, **runtime.info(), **versions, **present}.items():
        typer.echo(f"{name:14} {value}")


@command
def schema(path: Annotated[Path, typer.Argument(help="Where to write the JSON schema.")]) -> None:
    """Write a JSON schema of scene files, for editors."""
    from simphys.scenefile import write_schema

    write_schema(path)
    typer.echo(str(path))


def main() -> None:
    """Run the command line; `--debug` may stand anywhere in it."""
    signal.signal(signal.SIGINT, _remember_interrupt)
    sys.unraisablehook = _ignore_lost_interrupts
    arguments = sys.argv[1:]
    if "--debug" in arguments:
        arguments = ["--debug", *(argument for argument in arguments if argument != "--debug")]
    app(arguments)
