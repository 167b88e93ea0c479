"""Sweep files, mutated: each is planned, as by `simphys sweep --dry-run`, or refused."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from ..compare import ROOT
from .mutations import damage, mutate

FILE = ROOT / "docs" / "examples" / "spring_sweep.toml"
TABLES: dict[str, Any] = {
    "scene": str(FILE.with_name("spring.toml")),
    "do": "gradient",
    "overrides": ["optimizer.iterations=30"],
    "grid": {"geometry.anchors.0.stiffness": {"low": 20.0, "high": 60.0, "count": 3, "scale": "log"}},
    "zip": {"material.drag": [0.1, 0.3], "time.steps": [10, 20]},
    "sample": {"method": "sobol", "count": 3, "seed": 1, "over": {"time.dt": {"low": 1e-3, "high": 2e-3}}},
    "engine": {"kind": "serial", "workers": 2, "options": {"queue": "short"}},
    "attempts": 2,
    "time_limit": 60.0,
}
"""A sweep with every key."""


class SweepTarget:
    """A sweep. A case mutates its tables, or the bytes of its file, or what a member left, and plans it."""

    def __init__(self, name: str, folder: Path) -> None:
        from simphys.app.sweep.report import print_plan
        from simphys.app.sweep.spec import load_sweep, make_sweep

        self._name, self._folder = name, folder
        self._load, self._make, self._print = load_sweep, make_sweep, print_plan
        self._whole = {**TABLES, "folder": str(folder / "sweep")}
        self._member = self._left_member()
        self._plan(lambda: make_sweep(self._whole))
        self._plan(lambda: load_sweep(FILE))

    def _left_member(self) -> Path:
        """Leave the result of a member in the folder; return its file."""
        from simphys.app.sweep.member import RESULT
        from simphys.app.sweep.run import list_jobs

        spec = self._make(self._whole)
        file = Path(list_jobs(spec, list(spec.members()))[0].folder, RESULT)
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def _plan(self, read: Callable[[], Any]) -> None:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            self._print(read())

    def make_case(self, chance: random.Random) -> tuple[str, Callable[[], Any]]:
        if self._name == "file":
            copied = self._folder / FILE.name
            copied.write_bytes(damage(FILE.read_bytes().replace(b"spring.toml", TABLES["scene"].encode()), chance))
            return f"damage {FILE.name}", lambda: self._plan(lambda: self._load(copied))
        if self._name == "member":
            content = b'{"status": "done", "reason": "", "values": {"loss": 1.0}, "overrides": []}'
            self._member.write_bytes(damage(content, chance))
            return f"damage {self._member.name}", lambda: self._plan(lambda: self._make(copy.deepcopy(self._whole)))
        mutated, words = mutate(self._whole, chance)
        return words, lambda: self._plan(lambda: self._make(mutated))


KINDS = ("tables", "file", "member")
