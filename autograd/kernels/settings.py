"""The settings that kernels are compiled for: arch, precision and number of threads."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError

ARCHS = ("cpu", "cuda", "vulkan", "metal")
GPUS = ("cuda", "metal", "vulkan")
"""Those of GPUs, in the order in which "gpu" prefers them."""
BY_SHADERS = ("vulkan", "metal")
"""Archs whose kernels are shaders, and no code of LLVM."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Choices that kernels are compiled for: the arguments of `init`."""

    arch: str = "cpu"
    precision: str = "f64"
    threads: int = 1

    @property
    def on_gpu(self) -> bool:
        return self.arch != "cpu"


def is_arithmetic_fast(wanted: Settings) -> bool:
    """True if kernels may regroup sums, and approximate roots and quotients: CUDA's f64 would lose half its digits."""
    return (wanted.arch, wanted.precision) != ("cuda", "f64")


def require_known(wanted: Settings) -> None:
    """Raise InputError for an arch or a precision that does not exist, or for a precision that an arch lacks."""
    if wanted.arch not in ARCHS:
        raise InputError("runtime.init", f"arch is one of {(*ARCHS, 'gpu')}", wanted.arch, "Choose one of these.")
    if wanted.precision not in ("f32", "f64"):
        raise InputError("runtime.init", "precision is f32 or f64", wanted.precision, "Choose one of these.")
    if wanted.precision == "f64" and wanted.arch in BY_SHADERS:
        raise InputError(
            "runtime.init",
            f"arch={wanted.arch} computes in f32 only",
            "precision=f64",
            "Use precision=f32, or arch=cpu or cuda for f64.",
        )
