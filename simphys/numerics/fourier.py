"""The Poisson problem on a box that is periodic along all axes, solved by Fourier transform.

For wave numbers k in [0, 2 pi) along each axis, the operator of A z = b has the symbol

    compact: sum_a 2 - 2 cos k_a        central: sum_a (sin k_a)^2

The latter is minus the divergence of the gradient, both by central differences, which couples cells at a distance of
two spacings. Modes in the operator's null space, where the symbol is 0, are left out of z.
"""

from __future__ import annotations

import functools

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels import device

from .poisson import Poisson


class FourierSolver:
    """Solver for z = A^+ b, a symmetric map, to rounding; for the compact operator or the central one."""

    def __init__(self, system: Poisson, *, central: bool) -> None:
        self.b, self.z = system.array(), system.array()
        self._from, self._to = system.inside(self.b), system.inside(self.z)
        counts = [np.arange(n) for n in (*system.cells[:-1], system.cells[-1] // 2 + 1)]
        waves = [2 * np.pi * k / n for k, n in zip(counts, system.cells, strict=True)]
        singular = [(2 * k if central else k) % n == 0 for k, n in zip(counts, system.cells, strict=True)]
        symbol = functools.reduce(np.add.outer, [np.sin(k) ** 2 if central else 2 - 2 * np.cos(k) for k in waves])
        regular = ~functools.reduce(np.logical_and.outer, singular)
        inverse = np.divide(1.0, symbol, out=np.zeros_like(symbol), where=regular)
        self._inverse = inverse.astype(runtime.real_dtype())

    def solve(self) -> None:
        """Compute z from b."""
        self._to[...] = np.fft.irfftn(
            np.fft.rfftn(self._from) * self._inverse, s=self._from.shape, axes=range(self._from.ndim)
        )


class OnHost:
    """A solver of the host with arrays on the device, which travel at each solve."""

    def __init__(self, solver: FourierSolver) -> None:
        self._solver = solver
        self.b, self.z = device.to_device(solver.b), device.to_device(solver.z)

    def solve(self) -> None:
        """Compute z from b."""
        self._solver.b[...] = device.to_host(self.b, self._solver.b.shape)
        self._solver.solve()
        self.z.write(self._solver.z)
