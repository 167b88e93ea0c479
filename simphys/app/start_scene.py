"""Scenes to begin with: a list of those in a folder, and a commented one of any simulator."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from simphys.autograd.errors import InputError, StorageError
from simphys.scenefile.simulators import SIMULATORS
from simphys.scenefile.validate import did_you_mean

CHECKOUT = Path(__file__).resolve().parents[2] / "scenes"
"""The scenes that ship, in a checkout; an installed package has none."""
ONE, POSITIVE = "tied = true                       # one number for all", 'transform = "log"                 # above 0'
NOT_NEGATIVE, PART = "bounds = [0, inf]", "bounds = [0, 1]"


class Example(NamedTuple):
    """Fit that a new scene shows in comments: a parameter to identify, a field and a place to measure."""

    parameter: str
    field: str
    place: str
    about: tuple[str, ...]
    """Keys of the unknown: values that are physical, and whether all entries of the parameter are one number."""


EXAMPLES = {
    "mass_spring": Example("stiffness", "position", "node = 1, axis = 1", (ONE, NOT_NEGATIVE)),
    "charges": Example("charge", "position", "node = 0, axis = 0", ("entries = [0]                    # charge 0",)),
    "billiards": Example("restitution", "position", "node = 0, axis = 0", (PART,)),
    "heat": Example("conductivity", "temperature", "node = [4, 6]", (ONE, POSITIVE)),
    "molecular": Example("epsilon", "position", "node = 0, axis = 0", (POSITIVE,)),
    "mpm": Example("young_modulus", "position", "node = 0, axis = 1", (ONE, POSITIVE)),
    "smoke": Example("viscosity", "velocity", "node = [0, 3, 2]", (NOT_NEGATIVE,)),
    "wave": Example("speed", "height", "node = [50, 50]", (ONE, POSITIVE)),
    "sph": Example("viscosity", "depth", "node = 0", (NOT_NEGATIVE,)),
    "elastic": Example("vs", "vz", "node = [60, 0]", (ONE, "bounds = [200, 690]               # below vp / 1.155")),
    "shallow_water": Example("friction", "elevation", "node = [14, 19]", (NOT_NEGATIVE,)),
    "pendulum": Example("damping", "angle", "node = 0", (ONE, NOT_NEGATIVE)),
    "rigid": Example("restitution", "position", "node = 0, axis = 1", (PART,)),
}


@dataclass(frozen=True)
class SceneLine:
    """A scene file in the list."""

    path: Path
    title: str
    simulator: str
    command: str


def list_scenes(folder: Path | None) -> Iterator[SceneLine]:
    """List the scene files in a folder, by default those that ship. Errors: InputError if there are none."""
    home = CHECKOUT if folder is None else folder
    found = 0
    for path in sorted(home.rglob("*.toml")):
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue  # no scene: its own command says what is wrong
        simulator = tables.get("simulator", {})
        if isinstance(simulator, dict) and "name" in simulator:
            found += 1
            job = "optimize" if "unknowns" in tables else "run"
            shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
            yield SceneLine(shown, str(tables.get("title", "")), str(simulator["name"]), job)
    if not found:
        remedy = "Name another folder; the project's repository holds scenes/. `simphys new NAME` makes a scene."
        raise InputError(f"list of scenes in {home}", "must be a folder with scene files", "none", remedy)


def make_scene(name: str, simulator: str) -> Path:
    """Write NAME.toml, a commented scene of a simulator, to the current folder; return its path.

    Errors: InputError for a simulator that there is not, a name that is no file name, or a file that exists.
    """
    if simulator not in SIMULATORS:
        remedy = did_you_mean(simulator, list(SIMULATORS)) + f" There are {', '.join(SIMULATORS)}."
        raise InputError("new scene, --simulator", "must name a simulator", repr(simulator), remedy)
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if path.exists():
        raise InputError(f"new scene {path}", "must be a new file", "a file with that name", "Choose another name.")
    home = files("simphys.app") / "starts"
    example = EXAMPLES[simulator]
    about = "\n".join([f"# {line}" for line in example.about])
    ending = (home / "_common.toml").read_text(encoding="utf-8")
    head = f"# Simulate it by `simphys run {path}`; `simphys docs {simulator}` lists all keys."
    text = f'{head}\n\ntitle = "{path.stem}"\n\n' + (home / f"{simulator}.toml").read_text(encoding="utf-8")
    text += ending.format(**example._asdict() | {"about": about, "name": path.stem})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}. Name another file.") from error
    return path
