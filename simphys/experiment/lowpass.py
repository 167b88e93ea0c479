"""A low-pass filter along time, by which a fit looks at slow changes first.

    y_i = sum over k of g_|k| x_{i+k}          g_k = exp(-(k dt / s)^2 / 2) / sum of all      s = sqrt(ln 2) / (2 pi f)

Beyond its ends x is 0. A Gaussian does not ring, and at the frequency f it leaves 1/sqrt(2) of an amplitude. The filter
is a symmetric linear map, so that it is its own adjoint:

    adj_x = G adj_y

Source: Bunks et al. 1995 (Multiscale seismic waveform inversion) fit low frequencies first, since a wave that is wrong
by more than half a period leads to a local minimum, and slow ones have long periods.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor
from simphys.autograd.errors import InputError

Array = np.ndarray[Any, Any]

REACH = 8.0
"""The Gaussian ends after so many standard deviations, where it is below the rounding of f64."""


class Lowpass(Function):
    """x filtered along `axis` by a Gaussian's weights g_0 ... g_K; the shape stays."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, axis: int, kernel: Array) -> Array:
        ctx.axis, ctx.kernel = axis, kernel
        return convolved(x.data, axis, kernel)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        return convolved(adj.data, ctx.axis, ctx.kernel), None, None

    @staticmethod
    def jvp(ctx: Context, dx: Array, _axis: None, _kernel: None) -> Array:
        return convolved(dx, ctx.axis, ctx.kernel)


def as_cutoff(frequency: float) -> float | None:
    """A frequency of a scene file [Hz]: 0 and inf stand for no filter, None."""
    return frequency if 0 < frequency < math.inf else None


def gaussian(frequency: float, dt: float, samples: int) -> Array:
    """The weights g_0 ... g_K of a filter to `frequency` [Hz], for samples that are `dt` [s] apart.

    Errors: InputError for a frequency of which not one period is in so many samples.
    """
    if frequency * dt * samples < 1:
        found = f"a period of {1 / frequency:g} in a measurement of {dt * samples:g}"
        remedy = "Begin with a higher frequency."
        raise InputError("loss.lowpass", "a period of each frequency fits into the measurement", found, remedy)
    spread = math.sqrt(math.log(2)) / (2 * math.pi * frequency * dt)
    weights: Array = np.exp(-0.5 * (np.arange(math.ceil(REACH * spread) + 1) / spread) ** 2)
    return weights / (2 * weights.sum() - weights[0])


def convolved(x: Array, axis: int, kernel: Array) -> Array:
    """x filtered along an axis, by Fourier transforms: padded so far by zeros that nothing wraps round."""
    samples, reach = x.shape[axis], len(kernel) - 1
    length = 1 << (max(samples + reach, 2 * reach + 1) - 1).bit_length()
    circular = np.zeros(length)
    circular[: reach + 1] = kernel
    circular[length - reach :] = kernel[:0:-1]
    transfer = np.fft.rfft(circular).real.astype(x.dtype)  # real, as the weights are symmetric
    shape = [1] * x.ndim
    shape[axis] = len(transfer)
    spectrum = np.fft.rfft(x, length, axis=axis)
    spectrum *= transfer.reshape(shape)
    filtered = np.fft.irfft(spectrum, length, axis=axis)
    place = (slice(None),) * (axis % x.ndim) + (slice(samples),)
    return np.ascontiguousarray(filtered[place], x.dtype)
