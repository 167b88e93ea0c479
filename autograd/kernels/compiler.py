"""The kernel compiler of this process: Quadrants, the maintained fork of Taichi, or Taichi itself.

It is chosen when kernels are first imported, since they are written in its terms, and stays the same until the process
ends. SIMPHYS_COMPILER names it, or is "auto" (the default): Quadrants where it is installed, else Taichi. This module
imports neither, so that a program may set SIMPHYS_COMPILER after it has read what a scene asks for.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

from ..errors import InputError

COMPILERS = ("quadrants", "taichi")
"""The compilers, in the order in which "auto" prefers them."""
VARIABLE = "SIMPHYS_COMPILER"


def chosen() -> str:
    """The compiler that SIMPHYS_COMPILER names. Errors: InputError for an unknown name, or one not installed."""
    wanted = os.environ.get(VARIABLE) or "auto"
    if wanted != "auto" and wanted not in COMPILERS:
        constraint = f"the kernel compiler is one of {('auto', *COMPILERS)}"
        raise InputError(VARIABLE, constraint, wanted, "Set it to one of these, or unset it.")
    candidates = COMPILERS if wanted == "auto" else (wanted,)
    for name in candidates:
        if installed(name):
            return name
    needed = " or ".join(candidates)
    raise InputError(VARIABLE, f"{needed} must be installed", "no such package", f"Run pip install {candidates[0]}.")


def installed(name: str) -> bool:
    """True if a compiler is installed; a folder without `__init__.py`, which a removed one left behind, is none."""
    found = find_spec(name)
    return found is not None and found.origin is not None


def load(name: str) -> Any:
    """Import a compiler, without its messages except errors."""
    for variable in ("ENABLE_TAICHI_HEADER_PRINT", "ENABLE_QUADRANTS_HEADER_PRINT"):
        os.environ.setdefault(variable, "0")
    for variable in ("TI_LOG_LEVEL", "QD_LOG_LEVEL"):
        os.environ.setdefault(variable, "error")
    without_torch = name == "quadrants" and os.environ.setdefault("QD_ENABLE_TORCH", "0") == "0"
    with _hidden("pip"), _hidden("torch") if without_torch else nullcontext():
        module: Any = importlib.import_module(name)
    module.set_logging_level(module.ERROR)
    # A compiler inspects the frame around each decorated function. At the top of a module that is a frame of importlib,
    # which is no file, so that `inspect` looks for it among all modules each time.
    inspect.modulesbyfile.setdefault("<frozen importlib._bootstrap>", "importlib._bootstrap")
    return module


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """Hide a package that was not imported yet.

    Quadrants imports PyTorch for seconds, to hand arrays over to it. Compilers ask pip how old it is, and once pip was
    imported, setuptools, and by it torch.compile, cannot be imported under Python 3.11.
    """
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[package]
