"""Fitted motion and measurement, with their residuals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simphys.experiment.sampling import take_component
from simphys.plot import style
from simphys.record import Recording

NEEDS = ("observations/time", "observations/value", "observations/weight", "fit/predicted")
REMEDY = "A fit is recorded if the scene has [observations] and the run was completed."
CHANNELS = 6
"""Largest number of channels in the picture: those with the largest residuals."""
LONG_UNIT = 6
"""Number of letters of a unit above which it takes a line of its own beside residuals."""
BAND_POINTS = 600
"""Number of points of a band, at most about."""
GAP = 5.0
"""Distance of samples, in median distances, above which there is a gap between them."""


@dataclass(frozen=True, eq=False)
class Channel:
    """Samples of one channel, without missing ones: time [N] s; the rest [N] in `unit`."""

    label: str
    unit: str
    field: str
    time: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    sigma: np.ndarray
    missing: int
    model_time: np.ndarray
    model: np.ndarray
    held_out: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Time, measured and predicted values of the samples that the fit has not seen [M]."""
    band: tuple[np.ndarray, np.ndarray]
    """Time, and standard deviation of the prediction there; empty if not recorded."""
    sampled: np.ndarray
    """Time and limits [3, M] between which 95 % of the predictions of samples lie, less the fit's own; or empty."""

    @property
    def residual(self) -> np.ndarray:
        return self.measured - self.predicted

    @property
    def rmse(self) -> float:
        return float(np.sqrt(np.mean(self.residual**2)))

    def gaps(self) -> list[tuple[float, float]]:
        """Find the intervals of time without samples."""
        time = np.sort(np.concatenate([self.time, self.held_out[0]]))
        return [(time[i], time[i + 1]) for i in _find_gaps(time)]


def fit(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw each channel's samples with the model's motion, and beneath it the residuals, their RMSE and their σ.

    Samples of weight 0 are missing and not drawn; wide gaps are shaded. At most six channels are drawn, the worst ones.
    Saved at `path` if given. Errors: NotRecorded if the run has no observations or no fit.
    """
    style.require(recording, "fit", NEEDS, REMEDY)
    channels = [channel for channel in _read(recording) if channel.time.size]
    if not channels:
        raise style.NotRecorded("picture 'fit'", "needs samples of positive weight", "none", "Look at the weights.")
    worst = sorted(channels, key=lambda c: np.mean((c.residual / c.sigma) ** 2), reverse=True)[:CHANNELS]
    shown = [channel for channel in channels if channel in worst]
    with style.style():
        columns = 1 if len(shown) <= 2 else 2
        across = -(-len(shown) // columns)
        remark = f"worst {len(shown)} of {len(channels)} channels" if len(shown) < len(channels) else ""
        figure = style.new_figure(recording, 0.7 + 4.0 * across**0.9, remark)
        figure.set_figwidth(style.WIDTH * (1 if columns == 1 else 1.6))
        grid = figure.subplots(2 * across, columns, sharex=True, squeeze=False, height_ratios=(2.2, 1) * across)
        for axes in grid.T.reshape(columns * across, 2)[len(shown) :].flat:
            axes.remove()
        rows = grid.T.reshape(-1)[: 2 * len(shown)]
        for channel, above, beneath in zip(shown, rows[::2], rows[1::2], strict=True):
            _draw_motion(above, channel)
            _draw_residuals(beneath, channel)
        if columns == 1:
            for axes in rows:
                style.legend_above(axes)
        else:  # no room beside the titles
            style.legend_of_all(figure, rows)
        for place in {min(2 * across, len(rows)) - 1, len(rows) - 1}:  # the last of each column
            style.label_time(rows[place])
        figure.align_ylabels(rows)
        style.save(figure, path)
    return figure


def _draw_motion(axes: Axes, channel: Channel) -> None:
    missing = f", {channel.missing} missing" if channel.missing else ""
    axes.set_title(
        f"{channel.label}: {channel.time.size:,} {'sample' if channel.time.size == 1 else 'samples'}{missing}"
    )
    _shade_gaps(axes, channel, label="no samples")
    style.draw_samples(axes, channel.time, channel.measured, color=style.COLORS[0], label="measured")
    if channel.held_out[0].size:
        style.draw_samples(axes, *channel.held_out[:2], color=style.COLORS[2], label="held out")
    axes.plot(channel.model_time, channel.model, color=style.COLORS[1], linewidth=1.1, label="model")
    axes.set_ylabel(style.with_unit(style.words(channel.field), channel.unit))


def _draw_band(axes: Axes, time: np.ndarray, half: np.ndarray, **look: Any) -> None:
    """Fill a band around 0 with half its width at some times; of very many of these, each n-th one and the last."""
    rows = np.unique([*range(0, time.size, -(-time.size // BAND_POINTS)), time.size - 1]) if time.size else slice(None)
    half = np.broadcast_to(half, time.shape)[rows]
    axes.fill_between(time[rows], -half, half, linewidth=0, **look)


def _draw_residuals(axes: Axes, channel: Channel) -> None:
    time, measured, predicted = channel.held_out
    reach = 1.2 * float(np.abs(np.concatenate([channel.residual, measured - predicted])).max())
    axes.set_title(f"residual: RMSE {channel.rmse:.3g} {channel.unit}".rstrip())
    _draw_band(axes, channel.time, channel.sigma, color="#CFCFCF", label="noise ±σ")
    if channel.band[0].size:
        moments, deviation = channel.band
        _draw_band(axes, moments, 2 * deviation, color=style.COLORS[1], alpha=0.5, label="model ±2σ")
    if channel.sampled.size:
        moments, lower, upper = channel.sampled
        axes.plot(moments, lower, color=style.INK, linewidth=0.9, linestyle=":", label="samples, 95 %")
        axes.plot(moments, upper, color=style.INK, linewidth=0.9, linestyle=":")
    style.draw_samples(axes, channel.time, channel.residual, color=style.COLORS[0], label="measured − model")
    if time.size:
        style.draw_samples(axes, time, measured - predicted, color=style.COLORS[2], label="held out")
    _shade_gaps(axes, channel)
    axes.axhline(0, color=style.COLORS[1], linewidth=1.1)
    if reach > 0:
        axes.set_ylim(-reach, reach)
    label = style.with_unit("residual", channel.unit)
    axes.set_ylabel(label.replace(" ", "\n", 1) if len(channel.unit) > LONG_UNIT else label)


def _shade_gaps(axes: Axes, channel: Channel, label: str = "") -> None:
    for begin, end in channel.gaps():
        axes.axvspan(begin, end, color=style.SHADE, linewidth=0, label=label)
        label = ""  # a single entry in the legend


def _read(recording: Recording) -> list[Channel]:
    about = recording.attrs("observations")
    time, value, weight = (recording[f"observations/{name}"] for name in ("time", "value", "weight"))
    predicted = recording["fit/predicted"]
    channels: list[Channel] = []
    of_state: Any = recording.attrs("fit").get("of_state", [True] * value.shape[1])
    band = "bands/standard_deviation"
    deviation = recording[band] if band in recording else np.zeros((0, value.shape[1]))
    limits = [f"sampled_bands/{name}" for name in ("lower", "upper")]
    sampled = np.zeros((3, 0, value.shape[1]))
    if all(path in recording for path in limits):
        away = [recording[path] - predicted for path in limits]
        sampled = np.stack([np.broadcast_to(time[:, None], predicted.shape), *away])
    path = "observations/validation_weight"
    unseen = (recording[path] if path in recording else np.zeros_like(weight)) > 0
    described = [np.asarray(about[key]) for key in ("labels", "units", "fields")]
    for c, (label, unit, field, component) in enumerate(zip(*described, _components(about), strict=True)):
        there = (weight[:, c] > 0) & np.isfinite(predicted[:, c])
        if of_state[c]:
            model_time, model = _model_line(recording, field, component, time, predicted[:, c])
        else:
            model_time, model = _break_at_gaps(time, predicted[:, c])
        channels.append(
            Channel(
                label=str(label),
                unit="" if unit == "1" else str(unit),
                field=str(field),
                time=time[there],
                measured=value[there, c],
                predicted=predicted[there, c],
                sigma=weight[there, c] ** -0.5,
                missing=int(((weight[:, c] == 0) & ~unseen[:, c]).sum()),
                model_time=model_time,
                model=model,
                band=(time[: len(deviation)], deviation[:, c]),
                sampled=sampled[:, :, c],
                held_out=(time[unseen[:, c]], value[unseen[:, c], c], predicted[unseen[:, c], c]),
            )
        )
    return channels


def _components(about: dict[str, object]) -> list[tuple[int, ...]]:
    """Component of the field that each channel observes; some runs record node and axis for bodies."""
    if "components" in about:
        return [tuple(int(i) for i in str(text).split(",") if i) for text in np.asarray(about["components"])]
    return list(zip(np.asarray(about["nodes"]), np.asarray(about["axes"]), strict=True))


def _find_gaps(time: np.ndarray) -> np.ndarray:
    """Find the samples behind which there is a gap, by their sorted times."""
    distance = np.diff(time)
    return np.flatnonzero(distance > GAP * np.median(distance)) if distance.size else np.zeros(0, int)


def _break_at_gaps(time: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Interrupt a line that is known at samples alone where there are none."""
    behind = _find_gaps(time) + 1
    return np.insert(time, behind, time[behind - 1]), np.insert(predicted, behind, np.nan)


def _model_line(
    recording: Recording, field: str, component: tuple[int, ...], time: np.ndarray, predicted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Merge the predictions into the recorded motion, so that the line passes through them however few rows it has."""
    group = style.group_of_field(recording, field)
    if group in recording:
        moments, values = style.frames(recording, f"{group}/time", f"{group}/value")
        time, predicted = (
            np.concatenate([time, moments]),
            np.concatenate([predicted, take_component(values, component)]),
        )
    order = np.argsort(time, kind="stable")
    return time[order], predicted[order]
