"""Launches as on a GPU, on any device: arrays of the host are copied, and what the kernel writes is copied back."""

from __future__ import annotations

from typing import Any

from simphys.autograd import Kernel
from simphys.autograd.kernels import staging


def launch_staged(kernel: Kernel, *arguments: Any) -> None:
    """Launch a kernel with copies of its arrays on the device in force."""
    flat = kernel._flatten(arguments) if kernel._has_records else arguments
    staging.launch(kernel.name, kernel.arguments, kernel._check(flat), kernel._kernel_with)
