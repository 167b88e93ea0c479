"""Commands to begin with: scenes that ship, keys of scene files, the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simphys.app import late
from simphys.app.command import command

from .arguments import Overrides


@command
def show_list(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="Where scene files lie; those that ship by default.")
    ] = None,
) -> None:
    """List the scenes that ship, or those in a folder, with a line each."""
    rows = [(str(each.path), each.simulator, each.command, each.title) for each in late.start_scene.list_scenes(folder)]
    late.report.print_table("", ("scene", "simulator", "command", "title"), rows)


@command
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The scene is written to NAME.toml.")],
    simulator: Annotated[str, typer.Option("--simulator", "-s", help="mass_spring, rigid, wave ...")] = "mass_spring",
) -> None:
    """Write a small commented scene to start from, of any simulator."""
    typer.echo(str(late.start_scene.make_scene(name, simulator)))


@command
def docs(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A key (time.dt), a section (time), or a simulator.")],
) -> None:
    """Explain keys of scene files: type, default, bounds, and what their section says."""
    late.report.print_keys(late.key_docs.find_keys(key))


@command
def info(
    scene: Annotated[Path | None, typer.Argument(metavar="SCENE", help="Show the settings of this scene.")] = None,
    overrides: Overrides = None,
    counters: Annotated[
        bool, typer.Option("--counters", help="Count what SCENE launches on a GPU, and what travels there and back.")
    ] = False,
) -> None:
    """Show arch, compiler, the width of vector registers, precision, threads and versions."""
    loaded = None
    if scene is not None:
        loaded = late.scene.load_scene(scene, overrides or ())
    if counters:
        if loaded is None:
            raise typer.BadParameter("needs a scene: simphys info SCENE --counters", param_hint="--counters")
        return late.machine.print_work(loaded)
    described, complaint = late.machine.describe_machine()
    for name, value in described.items():
        typer.echo(f"{name:14} {value}")
    if complaint:
        typer.echo(complaint, err=True)


@command
def schema(path: Annotated[Path, typer.Argument(help="Where to write the JSON schema.")]) -> None:
    """Write a JSON schema of scene files, for editors."""
    late.scenefile.write_schema(path)
    typer.echo(str(path))
