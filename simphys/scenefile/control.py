"""The section of a scene file about the control, of one of five kinds, and the arrays that it holds."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import Count, Index, Positive, Section
from simphys.simulator import Arrays


class SinesSection(Section):
    """amplitude tanh(sum over waves j of weight[j] sin(frequency t + 2 pi j / waves) + bias), for each channel.

    channels: number of values that drive a step of the simulator, such as one for each actuator. frequency [rad/s].
    amplitude [unit of the control]: the largest magnitude, one number or one for each channel. weight [1] (a row for
    each channel) and bias [1] are 0 by default; unknowns call them control_weight and control_bias. unit: of the
    control, for pictures.
    """

    kind: Literal["sines"]
    channels: Count
    waves: Count
    frequency: Positive
    amplitude: Positive | list[Positive] = 1.0
    weight: list[list[float]] | None = None
    bias: list[float] | None = None
    unit: str = ""


class KnotsSection(Section):
    """Values at equally spaced times from the first step of the horizon to the last one, and straight lines between.

    value [unit of the control]: a row for each knot, with a number for each channel; unknowns call it control_value.
    unit: of the control, for pictures.
    """

    kind: Literal["knots"]
    value: Annotated[list[Annotated[list[float], Field(min_length=1)]], Field(min_length=1)]
    unit: str = ""


class WaveletSection(Section):
    """A pulse for all channels, amplitude * wavelet(t): see `simphys.experiment.wavelets`.

    channels: number of values that drive a step of the simulator, such as one for each source. frequency [Hz]:
    the dominant one. delay [s]: time of the middle of a ricker or gaussian, 1.5 / frequency by default, or the start of
    a sine_burst, 0 by default. amplitude [unit of the control]: one number, one for each channel, or a row of these for
    each member of a batch; unknowns call it control_amplitude. unit: of the control, for pictures.
    """

    kind: Literal["wavelet"]
    wavelet: Literal["ricker", "gaussian", "sine_burst"] = "ricker"
    channels: Count = 1
    frequency: Positive
    delay: float | None = None
    amplitude: float | list[float] | Annotated[list[list[float]], Field(min_length=1)] = 1.0
    unit: str = ""

    @property
    def members(self) -> int | None:
        """Number of batch members with amplitudes of their own; None if all share them."""
        rows = self.amplitude if isinstance(self.amplitude, list) else []
        return len(rows) if rows and isinstance(rows[0], list) else None


class PatternSection(Section):
    """Waves sin(frequency t + 2 pi j / waves), j = 0 ... waves - 1: the rhythm that a neural controller is given.

    frequency [rad/s]. It has no unknowns; those are the weights of the network.
    """

    kind: Literal["pattern"]
    waves: Count
    frequency: Positive
    unit: str = ""

    @property
    def channels(self) -> int:
        """Number of channels, one for each wave."""
        return self.waves


class RecordedSection(Section):
    """A measured input, such as a force, a voltage or the position of a hand: gain * (column at t - delay) + offset.

    columns: a column of the file for each channel. file, time, trials and trial [1] are, by default, those of
    [observations], with the same meaning, and so is time_unit [s] if the file is theirs; begin [s] is the time in the
    file at which the motion starts, by default that of observations.begin or of observations.window, or 0.
    interpolation: "linear", by straight lines between samples, and a step takes the value in its middle; or "held":
    each sample holds until the next one, as the output of a digital controller does, and a step takes the mean over it.
    gain [unit of the control / unit of the column], offset [unit of the control] and delay [s]: one number, or one for
    each channel; unknowns call them control_gain, control_offset and control_delay. unit: of the control, for pictures.
    """

    kind: Literal["recorded"]
    columns: Annotated[list[Index | str], Field(min_length=1)]
    file: str | None = None
    time: Index | str | None = None
    trials: Index | str | None = None
    trial: float | None = None
    begin: float | None = None
    time_unit: Positive | None = None
    interpolation: Literal["linear", "held"] = "linear"
    gain: float | list[float] = 1.0
    offset: float | list[float] = 0.0
    delay: float | list[float] = 0.0
    unit: str = ""

    @property
    def channels(self) -> int:
        """Number of channels, one for each column."""
        return len(self.columns)


AnyControl = SinesSection | KnotsSection | WaveletSection | PatternSection | RecordedSection
ControlSection = Annotated[AnyControl, Field(discriminator="kind")]
"""Section of the control, by its key `kind`."""


def control_arrays(section: AnyControl) -> Arrays:
    """Build the arrays of a control by name, from a section without problems."""
    if section.kind == "pattern":
        return {}
    if section.kind == "recorded":
        names = ("gain", "offset", "delay")
        return {f"control_{name}": np.full(section.channels, getattr(section, name), dtype=float) for name in names}
    if section.kind == "wavelet":
        amplitude = np.array(section.amplitude, dtype=float)
        return {"control_amplitude": np.full(section.channels, amplitude) if amplitude.ndim == 0 else amplitude}
    if section.kind == "knots":
        return {"control_value": np.array(section.value, dtype=float)}
    weight, bias = np.zeros((section.channels, section.waves)), np.zeros(section.channels)
    weight[:] = 0.0 if section.weight is None else section.weight
    bias[:] = 0.0 if section.bias is None else section.bias
    return {"control_weight": weight, "control_bias": bias}
