"""Compiled kernels are kept on disk, also after a process was killed while it wrote them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simphys.autograd import runtime
from simphys.autograd.kernels import cache_folder

PROGRAM = """
import numpy as np
from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti

@kernel
def double(x: ti.types.ndarray(dtype=ti.f64, ndim=1)):
    for i in x:
        x[i] = 2 * x[i]

runtime.init(precision="f64")
double(np.ones(3))
"""


def compile_apart(folder: Path) -> None:
    """Compile a kernel in another process."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    name = f"{'QD' if runtime.compiler == 'quadrants' else 'TI'}_OFFLINE_CACHE_FILE_PATH"
    subprocess.run([sys.executable, str(program)], env={**os.environ, name: str(folder)}, check=True)


@pytest.mark.parametrize(("age", "kept"), [(2 * cache_folder.OLD_S, True), (0.0, False)], ids=["old", "fresh"])
def test_an_old_lock_keeps_no_kernel_from_the_disk(age: float, kept: bool, tmp_path: Path) -> None:
    """One that is fresh may be that of a process which is writing now."""
    lock = Path(f"{tmp_path}_simphys") / cache_folder.LOCKS[runtime.compiler]
    lock.parent.mkdir(parents=True)
    lock.touch()
    os.utime(lock, (time.time() - age,) * 2)
    compile_apart(tmp_path)
    assert lock.exists() is not kept
    assert any([path != lock for path in lock.parent.iterdir()]) is kept
