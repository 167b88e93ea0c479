"""Sums and maxima of numbers on the device, always in the same order.

Each thread takes some numbers, a stride apart, so that threads side by side read numbers side by side. Their results,
the parts, are combined in the same way to `groups` numbers, about the root of the count of parts. These few are left to
one thread of the loop that needs the result, see `total` and `total_largest`.

Magnitudes are compared by the bits of the numbers: these are in the order of the magnitudes, with infinity and NaN
above all others, also where the compiler takes all numbers for finite.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.calls import Chain, KernelCall
from simphys.autograd.kernels.runtime import ti

PER_THREAD = 8
"""Count of numbers that a thread takes; fewer leave more parts to combine, more leave a GPU idle."""


def integer_of(real: Any) -> Any:
    """Type of integers with as many bits as numbers of this type."""
    return ti.i64 if real == ti.f64 else ti.i32


@ti.func
def count_terms(thread, count, threads):
    """Count the numbers, of `count`, that a thread takes: one at its own index, and others `threads` apart."""
    return (count - thread + threads - 1) // threads


@functools.cache
def functions(real: Any) -> SimpleNamespace:
    """Functions by which one thread combines the last few numbers, [quantities * groups]."""
    integer = integer_of(real)

    @ti.func
    def total(sums: ti.template(), quantity, groups):
        found = real(0.0)
        for k in range(groups):
            found += sums[quantity * groups + k]
        return found

    @ti.func
    def total_largest(sums: ti.template(), groups):
        """Bits of the largest magnitude."""
        found = integer(0)
        for k in range(groups):
            found = ti.max(found, ti.bit_cast(sums[k], integer))
        return found

    return SimpleNamespace(total=total, total_largest=total_largest)


@functools.cache
def kernels(real: Any) -> SimpleNamespace:
    """Kernels whose threads take numbers of flat arrays."""
    reals, integer = ti.types.ndarray(dtype=real, ndim=1), integer_of(real)

    @no_type_check
    @kernel
    def add_up(quantities: ti.i32, count: ti.i32, threads: ti.i32, x: reals, out: reals):
        """Add up x [quantities, count] into out [quantities, threads]."""
        for t in range(quantities * threads):
            first, found = t // threads * count + t % threads, real(0.0)
            for k in range(count_terms(t % threads, count, threads)):
                found += x[first + k * threads]
            out[t] = found

    @no_type_check
    @kernel
    def multiply(count: ti.i32, threads: ti.i32, x: reals, y: reals, out: reals):
        """Add up x y into out [threads]."""
        for t in range(threads):
            found = real(0.0)
            for k in range(count_terms(t, count, threads)):
                found += x[t + k * threads] * y[t + k * threads]
            out[t] = found

    @no_type_check
    @kernel
    def find_largest(count: ti.i32, threads: ti.i32, x: reals, out: reals):
        """Find the largest magnitudes of x [count], into out [threads]."""
        for t in range(threads):
            found = integer(0)
            for k in range(count_terms(t, count, threads)):
                found = ti.max(found, ti.bit_cast(ti.abs(x[t + k * threads]), integer))
            out[t] = ti.bit_cast(found, real)

    return SimpleNamespace(add_up=add_up, multiply=multiply, find_largest=find_largest)


class Sums:
    """Launches that leave `results` [quantities * groups] of arrays of `count` numbers."""

    def __init__(self, count: int) -> None:
        self.threads = -(-count // PER_THREAD)
        self.groups = math.isqrt(self.threads - 1) + 1
        self.parts, self.results = device.device_array((2 * self.threads,)), device.device_array((2 * self.groups,))
        self._kernels, self._count = kernels(runtime.real()), count

    def add_up(self, x: Any) -> Chain:
        """Launch the sum of x."""
        return Chain(
            KernelCall(self._kernels.add_up, 1, self._count, self.threads, x, self.parts), self.add_up_parts(1)
        )

    def dot(self, x: Any, y: Any) -> Chain:
        """Launch x.y."""
        return Chain(
            KernelCall(self._kernels.multiply, self._count, self.threads, x, y, self.parts), self.add_up_parts(1)
        )

    def find_largest(self, x: Any) -> Chain:
        """Launch the search for the largest magnitude of x."""
        find = self._kernels.find_largest
        return Chain(
            KernelCall(find, self._count, self.threads, x, self.parts),
            KernelCall(find, self.threads, self.groups, self.parts, self.results),
        )

    def add_up_parts(self, quantities: int) -> KernelCall:
        """Launch the sum of parts [quantities, threads]."""
        return KernelCall(self._kernels.add_up, quantities, self.threads, self.groups, self.parts, self.results)
