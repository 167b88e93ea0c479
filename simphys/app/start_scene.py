"""Scenes to begin with: a list of those in a folder, and a commented one of any simulator."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from simphys.autograd.errors import InputError, StorageError
from simphys.scenefile.simulators import SIMULATORS
from simphys.scenefile.validate import did_you_mean

CHECKOUT = Path(__file__).resolve().parents[2] / "scenes"
"""The scenes that ship, in a checkout; an installed package has none."""
EXAMPLES = {
    "mass_spring": ("stiffness", "position", "node = 1, axis = 1"),
    "charges": ("charge", "position", "node = 0, axis = 0"),
    "billiards": ("restitution", "position", "node = 0, axis = 0"),
    "heat": ("conductivity", "temperature", "node = [4, 6]"),
    "molecular": ("epsilon", "position", "node = 0, axis = 0"),
    "mpm": ("young_modulus", "position", "node = 0, axis = 1"),
    "smoke": ("viscosity", "velocity", "node = [0, 3, 2]"),
    "wave": ("speed", "height", "node = [50, 50]"),
    "sph": ("viscosity", "depth", "node = 0"),
    "elastic": ("vs", "vz", "node = [60, 0]"),
    "shallow_water": ("friction", "elevation", "node = [14, 19]"),
    "pendulum": ("damping", "angle", "node = 0"),
    "rigid": ("restitution", "position", "node = 0, axis = 1"),
}
"""For each simulator a parameter to identify, and a field and a place to measure."""


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
    parameter, field, place = EXAMPLES[simulator]
    ending = (home / "_common.toml").read_text(encoding="utf-8")
    head = f"# Simulate it by `simphys run {path}`; `simphys docs {simulator}` lists all keys."
    text = f'{head}\n\ntitle = "{path.stem}"\n\n' + (home / f"{simulator}.toml").read_text(encoding="utf-8")
    text += ending.format(parameter=parameter, field=field, place=place, name=path.stem)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}. Name another file.") from error
    return path
