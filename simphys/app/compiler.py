"""The kernel compiler that a scene asks for, chosen before anything imports a compiler."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path


def choose_compiler(scene: Path, overrides: Sequence[str] = ()) -> None:
    """Set SIMPHYS_COMPILER to `runtime.compiler` of a scene file or its overrides, unless that is "auto" or missing.

    Once kernels are imported it is too late, and nothing is set: `runtime.init` refuses another compiler then. A file
    that cannot be read is not complained of here, but where the scene is loaded.
    """
    wanted = _wanted(scene, overrides)
    if wanted not in (None, "auto") and "simphys.autograd.kernels.runtime" not in sys.modules:
        os.environ["SIMPHYS_COMPILER"] = str(wanted)


def choose_compiler_of_sweep(file: Path) -> None:
    """Do so for the scene of a sweep file."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        choose_compiler(file.parent / tables["scene"], tables.get("overrides", ()))
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return


def _wanted(scene: Path, overrides: Sequence[str]) -> object:
    named = [text.partition("=") for text in overrides]
    given = [value.strip().strip("\"'") for key, _, value in named if key.strip() == "runtime.compiler"]
    if given:
        return given[-1]
    try:
        section = tomllib.loads(scene.read_text(encoding="utf-8")).get("runtime", {})
    except (OSError, ValueError, RecursionError):
        return None
    return section.get("compiler") if isinstance(section, dict) else None
