"""Vector registers: the widest that the processor has, and the widest that compiled kernels use.

A compiler that is older than the processor may treat it as a generic one, and then uses a fraction of its width.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, no_type_check

import numpy as np

from .runtime import compiler, ti

_REGISTERS = {512: "zmm", 256: "ymm", 128: "xmm"}
"""Names of the registers of x86-64, by width [bit]."""
_FEATURES = {512: ("AVX512F",), 256: ("AVX2", "AVX"), 128: ("SSE2", "SSE", "NEON", "ASIMD")}
"""Names of the processor's features that bring registers, by width [bit]."""


def processor_bits() -> int:
    """Return the width of the processor's widest vector registers [bit]; 0 if unknown."""
    try:
        features: Mapping[str, bool] = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    except AttributeError:  # another release of NumPy
        return 0
    return max([bits for bits, names in _FEATURES.items() if any(features.get(name) for name in names)], default=0)


def kernel_bits() -> int:
    """Return the width of the widest vector registers in the code of a sum of products [bit]; 0 if unknown.

    A new process compiles it, because assembly is written by a whole program of the compiler or by none.
    """
    program = "from simphys.autograd.kernels.width import write_assembly; write_assembly()"
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "SIMPHYS_COMPILER": compiler}
        environment["PYTHONPATH"] = os.pathsep.join([*filter(None, sys.path)])  # in the folder, to find this package
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=folder, env=environment,
                              capture_output=True, check=False)  # fmt: skip
        files = list(Path(folder).glob("*.s")) if done.returncode == 0 else []
        code = "".join([file.read_text() for file in files])
    return next((bits for bits, name in _REGISTERS.items() if name in code), 0)


@no_type_check
def write_assembly() -> None:
    """Compile a sum of products in a compiler started for that, which writes its assembly to the current folder."""
    folder = {"debug_dump_path": os.getcwd()} if compiler == "quadrants" else {}
    ti.init(arch=ti.cpu, offline_cache=False, print_kernel_asm=True, fast_math=True, log_level=ti.ERROR, **folder)
    reals = ti.types.ndarray(dtype=ti.f32, ndim=1)

    @ti.kernel
    def multiply_and_add(a: reals, b: reals, c: reals):
        ti.loop_config(serialize=True)
        for k in range(1):
            total = 0.0
            for i in range(a.shape[0]):
                total += a[i] * b[i]
            c[k] = total

    x: Any = np.ones(64, np.float32)
    multiply_and_add(x, x, np.zeros(1, np.float32))


def complaint(here: int, used: int) -> str | None:
    """Return what is wrong, and the remedy, where kernels use less than half of the processor's width; else None."""
    if not 0 < 2 * used < here:
        return None
    other = "Set SIMPHYS_COMPILER=quadrants" if compiler == "taichi" else "Look for a newer release of quadrants"
    return f"Kernels use {used} of the {here} bits of this processor's vector registers. {other}."
