"""Things that are broken: scenes that ship, files of numbers of every kind, run folders; and random steps and fits."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from ..compare import ROOT
from .files import KINDS, FileTarget
from .fits.systems import SYSTEMS
from .fits.target import FitTarget
from .grow import Schema
from .limits import run_interruptibly
from .mutations import damage, mutate, vary
from .recordings import RUNS, RunTarget
from .steps.target import FAMILIES, StepTarget
from .sweeps import KINDS as SWEEP_KINDS
from .sweeps import SweepTarget

SCENES = [f"{path.parent.name}/{path.stem}" for path in sorted((ROOT / "scenes").glob("*/*.toml"))]
FILES = [f"files/{kind}" for kind in KINDS]
SIMULATED = [f"simulated/{name}" for name in SCENES]
SWEEPS = [f"sweeps/{kind}" for kind in SWEEP_KINDS]
RUN_FOLDERS = [f"runs/{name}" for name in RUNS]
RANDOM_STEPS = [f"steps/{name}" for name in FAMILIES]
FITS = [f"fits/{name}" for name in SYSTEMS]


class Target(Protocol):
    """Thing of which cases are mutations."""

    def make_case(self, chance: random.Random) -> tuple[str, Callable[[], Any]]:
        """Make a case: what is broken, in words, and the use of it."""


def find_target(name: str, folder: Path) -> Target:
    """Prepare a target by its name; it may write to `folder`."""
    group, _, kind = name.partition("/")
    if group == "files":
        return FileTarget(kind, folder)
    if group == "runs":
        return RunTarget(kind, folder)
    if group == "fits":
        return FitTarget(kind, folder)
    if group == "steps":
        return StepTarget(kind)
    if group == "sweeps":
        return SweepTarget(kind, folder)
    if group == "simulated":
        return SceneTarget(kind, folder, simulate)
    return SceneTarget(name, folder)


class SceneTarget:
    """A scene file. Its mutations are loaded, which checks them, builds models, and reads files of data.

    Those that load are then used by `then`.
    """

    def __init__(self, name: str, folder: Path, then: Callable[[Any], None] | None = None) -> None:
        from simphys.experiment.scene import build_scene
        from simphys.scenefile import load, to_dict

        self._file = ROOT / "scenes" / f"{name}.toml"
        config = load(self._file)
        scene = build_scene(config)
        self._tables, self._folder, self._then = to_dict(config), folder, then
        self._schema = Schema(config.simulator.name)
        if then is not None:
            then(scene)

    def make_case(self, chance: random.Random) -> tuple[str, Callable[[], Any]]:
        if self._then is not None:
            mutated, words = vary(self._tables, chance)
            return words, lambda: self._use(in_folder(mutated, self._folder))
        match chance.choices(("mutate", "damage", "grow", "both", "text"), (50, 15, 15, 15, 5))[0]:
            case "mutate":
                mutated, words = mutate(self._tables, chance)
            case "damage":
                mutated, words = with_damaged_file(self._tables, self._folder, chance)
            case "grow":
                mutated, words = self._schema.grow(self._tables, chance)
            case "both":
                grown, words = self._schema.grow(self._tables, chance)
                mutated, more = mutate(grown, chance)
                words += f", {more}"
            case _:
                return f"damage {self._file.name}", self._damaged(damage(self._file.read_bytes(), chance))
        return words, lambda: self._use(in_folder(mutated, self._folder))

    def _damaged(self, content: bytes) -> Callable[[], Any]:
        """The use of a scene file with this content."""
        from simphys.experiment.scene import load_scene

        copy = self._folder / self._file.name
        copy.write_bytes(content)
        return lambda: load_scene(copy)

    def _use(self, tables: dict[str, Any]) -> None:
        from simphys.experiment.scene import build_scene
        from simphys.scenefile import from_dict

        scene = build_scene(from_dict(tables))
        if self._then is not None:
            self._then(scene)


STEPS = 3
"""Steps that a scene is simulated for."""


def simulate(scene: Any) -> None:
    """Simulate a few steps; a motion may blow up."""
    from simphys.autograd.errors import InputError
    from simphys.rollout import BlowUp

    def work() -> None:
        with suppress(BlowUp, InputError, MemoryError):  # the commands turn these into messages
            for _ in zip(range(STEPS), scene.stream(block=1), strict=False):
                pass

    run_interruptibly(work)


def in_folder(tables: Any, folder: Path) -> Any:
    """The tables with the paths `loop` and `folder` made absolute."""
    if isinstance(tables, dict):
        return {key: in_folder(value, folder) for key, value in tables.items()}
    if isinstance(tables, list):
        return [in_folder(value, folder) for value in tables]
    return str(folder / tables) if tables in ("loop", "folder") else tables


def with_damaged_file(tables: dict[str, Any], folder: Path, chance: random.Random) -> tuple[dict[str, Any], str]:
    """The tables with a damaged copy of one of the files that they name; without files, a mutation instead."""
    files = sorted({path for path in _texts(tables) if "/" in path and Path(path).is_file()})
    if not files:
        return mutate(tables, chance)
    original = Path(chance.choice(files))
    copy = folder / original.name
    copy.write_bytes(damage(original.read_bytes(), chance))
    return _exchanged(tables, str(original), str(copy)), f"damage {original.name}"


def _texts(tables: Any) -> list[str]:
    if isinstance(tables, dict | list):
        inner = tables.values() if isinstance(tables, dict) else tables
        return [text for value in inner for text in _texts(value)]
    return [tables] if isinstance(tables, str) else []


def _exchanged(tables: Any, old: str, new: str) -> Any:
    if isinstance(tables, dict):
        return {key: _exchanged(value, old, new) for key, value in tables.items()}
    if isinstance(tables, list):
        return [_exchanged(value, old, new) for value in tables]
    return new if tables == old else tables
