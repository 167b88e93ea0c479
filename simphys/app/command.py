"""The commands of `simphys` as functions whose errors become messages and exit statuses; Ctrl-C; the entry point."""

from __future__ import annotations

import errno
import functools
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import typer

from simphys.app import late
from simphys.app.compiler import choose_compiler

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Differentiable physics: simulate scenes, identify their parameters, prove their gradients.",
)
EXAMPLES = {
    "assess": "simphys assess scenes/mass_spring/air_track.toml",
    "check-fit": "simphys check-fit scenes/mass_spring/three_trials.toml",
    "recover": "simphys recover scenes/mass_spring/air_track.toml --times 20",
    "multistart": "simphys multistart scenes/mass_spring/air_track.toml --starts 64",
    "design": "simphys design scenes/mass_spring/three_trials.toml",
    "sample": "simphys sample scenes/pendulum/swing.toml",
    "intervals": "simphys intervals scenes/mass_spring/air_track.toml",
    "sweep": "simphys sweep docs/examples/spring_sweep.toml",
    "optimize": "simphys optimize scenes/mass_spring/air_track.toml optimizer.iterations=20 --report",
    "run": "simphys run scenes/mass_spring/jelly.toml environment.ground.friction=0.2",
    "check": "simphys check scenes/pendulum/swing.toml --save",
    "health": "simphys health scenes/billiards/pocket.toml",
    "plot": "simphys plot runs/air_track",
    "film": "simphys film runs/walker_2d -o walker.mp4",
    "view": "simphys view runs/walker_2d runs/other",
    "report": "simphys report runs/air_track -o air_track.html",
    "graph": "simphys graph scenes/pendulum/swing.toml",
    "kernels": "simphys kernels scenes/heat/conductivity.toml --form gpu-blocks",
    "info": "simphys info scenes/wave/inversion.toml",
    "schema": "simphys schema scene.schema.json",
    "list": "simphys list scenes/rigid",
    "new": "simphys new ball --simulator rigid",
    "docs": "simphys docs optimizer.method",
    "export": "simphys export runs/air_track --to csv",
    "compare": "simphys compare runs/air_track runs/other",
}
"""An example of each command, shown by its help."""
_debug = False
_interrupted = False
"""True after Ctrl-C: a library may swallow the KeyboardInterrupt, or turn it into an error of its own."""


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command whose errors become messages and exit statuses, with a traceback only under --debug.

    A function `show_list` has the command `list`, where the plain name is that of a type.
    """

    @functools.wraps(function)
    def guarded(*arguments: Any, **options: Any) -> None:
        if options.get("scene") is not None:
            choose_compiler(options["scene"], options.get("overrides") or ())
        errors = late.errors  # imported before Ctrl-C raises, which a callback of an import would lose
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, _remember_interrupt)
        try:
            function(*arguments, **options)
        except errors.InputError as error:
            leave(error, str(error), 2)
        except errors.StorageError as error:
            leave(error, str(error), 1)
        except OSError as error:  # StorageError is one, with its own message
            leave(error, *_describe_system_error(error))
        except MemoryError as error:
            leave(error, f"Not enough memory: {error}. Simulate fewer steps or nodes.", 1)
        except KeyboardInterrupt as error:
            leave(error, "Interrupted.", 130)
        except typer.Exit:
            raise
        except Exception as error:
            if not _interrupted:
                raise
            leave(error, "Interrupted.", 130)

    name = function.__name__.removeprefix("show_").replace("_", "-")
    return app.command(name, epilog=f"Example: {EXAMPLES[name]}" if name in EXAMPLES else None)(guarded)


def _describe_system_error(error: OSError) -> tuple[str, int]:
    """The message and the exit status for a file that the system refuses: a name that it cannot have, a full disk."""
    name, reason = str(error.filename or "a file"), error.strerror or str(error)
    if len(name) > 300:
        name = f"{name[:200]} ... {name[-80:]} ({len(name)} characters)"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return f"{name}: cannot be written; found: {reason}. Free some space, or name another folder.", 1
    return f"{name}: must be a path that the system can use; found: {reason}. Name another one.", 2


def _remember_interrupt(number: int, frame: FrameType | None) -> None:
    global _interrupted
    _interrupted = True
    signal.default_int_handler(number, frame)


def _ignore_lost_interrupts(lost: sys.UnraisableHookArgs) -> None:
    """Print nothing for an interrupt within a callback of the interpreter: it is remembered, and raised later."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)


def stop_if_interrupted() -> None:
    """Raise KeyboardInterrupt after Ctrl-C."""
    if _interrupted:
        raise KeyboardInterrupt


def show_tracebacks(wanted: bool) -> None:
    """Let errors show where they come from."""
    global _debug
    _debug = wanted


def leave(error: BaseException, message: str, status: int) -> None:
    """Print a message, or under --debug a traceback, and leave with an exit status."""
    if _debug:
        traceback.print_exception(error)
    else:
        typer.echo(message, err=True)
    raise typer.Exit(status)


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning as a user reads it, without the line of the code that gives it."""
    return f"warning: {message}\n"


def main() -> None:
    """Run the command line; `--debug` may stand anywhere in it."""
    sys.unraisablehook = _ignore_lost_interrupts
    warnings.formatwarning = _format_warning
    arguments = sys.argv[1:]
    if "--debug" in arguments:
        arguments = ["--debug", *(argument for argument in arguments if argument != "--debug")]
    app(arguments)
