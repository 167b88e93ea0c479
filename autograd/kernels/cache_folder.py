"""The folder on disk in which the compiler keeps kernels, for all processes."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

BYTES = 2**30
"""Largest size of the folder: the compiler's own limit holds the kernels of few simulators."""
LOCKS = {"quadrants": "kernel_compilation_manager/qdcache.lock", "taichi": "ticache.lock"}
OLD_S = 600.0
"""Age of a lock [s] beyond which its process has ended: it is held while a process writes its kernels, at its end."""


def find(compiler: str, ti: Any) -> str:
    """Find our folder, beside that of other programs: each of these, at its end, removes a quarter beyond its limit."""
    variable = f"{'QD' if compiler == 'quadrants' else 'TI'}_OFFLINE_CACHE_FILE_PATH"
    return f"{os.environ.get(variable, ti._lib.core.CompileConfig().offline_cache_file_path)}_simphys"


def remove_old_lock(compiler: str, folder: str) -> None:
    """Remove the lock of a process that was killed while it wrote kernels.

    While it is there, no process keeps its kernels, and each compiles them anew. The compiler does not say so.
    """
    lock = Path(folder) / LOCKS[compiler]
    with suppress(OSError):  # there is none, or another process was faster
        if time.time() - lock.stat().st_mtime > OLD_S:
            lock.unlink()
