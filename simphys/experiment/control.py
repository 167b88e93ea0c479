"""Controls of a scene: signals along time, as functions of a few numbers that may be unknown.

    sines    u[t, a] = amplitude[a] tanh( sum_j weight[a, j] sin(frequency t dt + 2 pi j / waves) + bias[a] )
    knots    u[t, a] runs linearly from value to value [m, a], which are those of equally spaced steps: the horizon's
             first step, ..., its last one
    wavelet  u[t, a] = amplitude[a] w(t dt), a pulse of `wavelets` with a frequency [Hz] and a delay [s]
    recorded u[t, a] = gain[a] m_a((t + 1/2) dt - delay[a]) + offset[a], a measured m_a(time) of straight lines; of one
             that is held, the mean over the step takes the place of the value in its middle
    pattern  u[t, a] = sin(frequency t dt + 2 pi a / A), the waves of `nn.pattern` that a neural controller is given

u [T, A] in the simulator's unit, t the step 0 ... T - 1 that it acts in, a one of A channels, frequency [rad/s].
Of two waves one is the other's negative: three or more hold every phase. Source: sines are the open-loop controller of
Hu et al. 2020 (DiffTaichi) for soft robots, with 4 waves of 20 rad/s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops, tensor
from simphys.nn import pattern
from simphys.scenefile import ObservationsSection
from simphys.scenefile.control import AnyControl, control_arrays
from simphys.simulator import Array, Record

from .measured_input import read_input
from .wavelets import WAVELETS


@dataclass(frozen=True)
class Controls(Record, ABC):
    """The numbers of a signal: Tensors, all named control_..., and constants without gradients."""

    dt: float
    """Time step [s]."""
    unit: str
    """Unit of the signal."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The fields that are Tensors."""
        return tuple([name for name in super().names() if name.startswith("control_")])

    @abstractmethod
    def signal(self, steps: int) -> Tensor:
        """The control of the first `steps` steps, [steps, A]."""


@dataclass(frozen=True)
class Sines(Controls):
    """Waves of one frequency, mixed for each channel and limited to the amplitude of that channel."""

    frequency: float
    """[rad/s]"""
    amplitude: Array
    """The largest magnitude, [A] in the control's unit."""
    control_weight: Tensor
    """Weight of each wave in each channel, [A, waves]."""
    control_bias: Tensor
    """Bias of each channel, [A]."""

    def signal(self, steps: int) -> Tensor:
        weight, dtype = self.control_weight, self.control_weight.dtype
        waves = weight.shape[1]
        phase = 2 * np.pi * np.arange(waves) / waves
        basis = np.sin(self.frequency * self.dt * np.arange(steps)[:, None] + phase).astype(dtype)  # [T, waves]
        mixed = ops.matmul(basis, ops.transpose(weight)) + self.control_bias
        return ops.tanh(mixed) * self.amplitude.astype(dtype)


@dataclass(frozen=True)
class Knots(Controls):
    """Values at equally spaced steps, and straight lines between them."""

    steps: int
    """Number of steps of the whole horizon, over which the knots are spread, even if less is simulated."""
    control_value: Tensor
    """[knots, A] in the control's unit."""

    def signal(self, steps: int) -> Tensor:
        """Interpolate the knots; the last value holds beyond the horizon."""
        value, last = self.control_value, len(self.control_value.data) - 1
        place = np.minimum(np.arange(steps) * last / max(self.steps - 1, 1), last)
        before = np.minimum(place.astype(np.int64), max(last - 1, 0))
        part = (place - before).astype(value.dtype)[:, None]
        return value[before] * (1 - part) + value[np.minimum(before + 1, last)] * part


@dataclass(frozen=True)
class Wavelet(Controls):
    """The same pulse for all channels, each with its own amplitude."""

    wavelet: str
    """One of `wavelets.WAVELETS`."""
    frequency: float
    """[Hz]"""
    delay: float | None
    """[s]; None for the wavelet's own."""
    control_amplitude: Tensor
    """[A] in the control's unit, or [B, A] with a row for each member of a batch, whose signal is [B, T, A]."""

    def signal(self, steps: int) -> Tensor:
        amplitude = self.control_amplitude
        times = self.dt * np.arange(steps)
        pulse = WAVELETS[self.wavelet](times, self.frequency, self.delay).astype(amplitude.dtype)
        return ops.reshape(amplitude, (*amplitude.shape[:-1], 1, amplitude.shape[-1])) * pulse[:, None]


@dataclass(frozen=True)
class Pattern(Controls):
    """The waves of a neural controller, which have no unknowns."""

    waves: int
    frequency: float
    """[rad/s]"""

    def signal(self, steps: int) -> Tensor:
        return tensor(pattern(steps, dt=self.dt, frequency=self.frequency, waves=self.waves))


@dataclass(frozen=True)
class Recorded(Controls):
    """A measured input; its first and its last value hold beyond its ends."""

    times: Array
    """Times of the samples [N], in s from the start of the motion."""
    samples: Array
    """Measured values [N, A]."""
    control_gain: Tensor
    """Unit of the control by unit of the column, [A]."""
    control_offset: Tensor
    """[A] in the control's unit."""
    control_delay: Tensor
    """Time by which the control follows the recording, [A] in s."""
    held: bool = False
    """True if each sample holds until the next one."""

    @property
    def end(self) -> float:
        """Time from which on it is not known [s]: one sample after the last one."""
        return float(2 * self.times[-1] - self.times[-2])

    def signal(self, steps: int) -> Tensor:
        measured = self._average(steps) if self.held else self._interpolate(steps)
        return measured * self.control_gain + self.control_offset

    def _average(self, steps: int) -> Tensor:
        """Average held samples over each step; a delay moves what enters and what leaves it."""
        delay, dtype = self.control_delay, self.control_delay.dtype
        spans, columns = np.diff(self.times)[:, None], np.arange(self.samples.shape[1])
        whole = np.concatenate([np.zeros((1, len(columns))), np.cumsum(spans * self.samples[:-1], axis=0)])
        ends = self.dt * np.arange(steps + 1)[:, None] - delay.data
        left = np.maximum(np.searchsorted(self.times, ends, side="right") - 1, 0)  # [T + 1, A]
        value = self.samples[left, columns]
        integral = whole[left, columns] + (ends - self.times[left]) * value
        mean, slope = (np.diff(each, axis=0) / self.dt for each in (integral, value))
        return (delay.data - delay) * slope.astype(dtype) + mean.astype(dtype)

    def _interpolate(self, steps: int) -> Tensor:
        delay, dtype = self.control_delay, self.control_delay.dtype
        middle = self.dt * (np.arange(steps) + 0.5)[:, None]
        when = middle - delay.data
        # The pieces before the first sample and behind the last one are flat.
        piece = np.searchsorted(self.times, when, side="right")  # [T, A]
        left = np.maximum(piece - 1, 0)
        slopes = np.diff(self.samples, axis=0) / np.diff(self.times)[:, None]
        slopes = np.concatenate([np.zeros_like(slopes[:1]), slopes, np.zeros_like(slopes[:1])])
        columns = np.arange(self.samples.shape[1])
        slope, before = slopes[piece, columns], self.samples[left, columns]
        elapsed = (middle - self.times[left]).astype(dtype) - delay
        return elapsed * slope.astype(dtype) + before.astype(dtype)


def build_controls(section: AnyControl, *, steps: int, dt: float, seen: ObservationsSection | None = None) -> Controls:
    """Build the controls of a section, for a horizon of `steps` steps.

    `seen`: the section of observations, whose file a measured input shares unless it has its own. Errors: InputError
    for a measured input that cannot be read, or ends before the horizon.
    """
    made: dict[str, Any] = {name: tensor(values) for name, values in control_arrays(section).items()}
    made |= {"dt": dt, "unit": section.unit}
    if section.kind == "recorded":
        times, samples = read_input(section, seen, horizon=steps * dt)
        return Recorded(times=times, samples=samples, held=section.interpolation == "held", **made)
    if section.kind == "pattern":
        return Pattern(waves=section.waves, frequency=section.frequency, **made)
    if section.kind == "wavelet":
        return Wavelet(wavelet=section.wavelet, frequency=section.frequency, delay=section.delay, **made)
    if section.kind == "knots":
        return Knots(steps=steps, **made)
    amplitude = np.broadcast_to(np.asarray(section.amplitude, dtype=float), (section.channels,))
    return Sines(frequency=section.frequency, amplitude=amplitude, **made)
