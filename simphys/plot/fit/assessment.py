"""Judgement of a fit: residuals along lags, correlations of the unknowns, fits from other starts, and recovery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.record import Recording

NEEDS = ("residual_tests/autocorrelation", "assessment/starts/loss", "assessment/recovery/error")
REMEDY = "Only `simphys assess` records other starts and recovery."
MOST_UNKNOWNS = 16
"""Largest number of unknowns that are drawn."""
INTERVAL = 1.96
"""Half width of an interval of 95 % in standard errors."""


def assessment(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the autocorrelation of residuals, correlations, ends from other starts, and errors of recovered values.

    Saved at `path` if given. Errors: NotRecorded if the run was not assessed.
    """
    style.require(recording, "assessment", NEEDS[:2], REMEDY)
    with style.style():
        verdict = str(recording.attrs("judgement")["verdict"])
        figure = style.new_figure(recording, 7.2, verdict)
        ((lags, correlations), (starts, recovery)) = figure.subplots(2, 2)
        _draw_lags(lags, recording)
        _draw_correlations(figure, correlations, recording)
        _draw_starts(starts, recording)
        if NEEDS[2] in recording:
            _draw_recovery(recovery, recording)
        else:
            recovery.set_axis_off()
            recovery.text(0.5, 0.5, "no recovery of a fit that failed", ha="center", va="center")
        style.save(figure, path)
    return figure


def recovery(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the errors of recovered values, of a run without other starts; those stand in the picture 'assessment'.

    Saved at `path` if given. Errors: NotRecorded if nothing was recovered, or all of it is in that picture.
    """
    style.require(recording, "recovery", NEEDS[2:], "Only `simphys recover` records it.")
    if NEEDS[1] in recording:
        raise style.NotRecorded("picture 'recovery'", "is part of the picture 'assessment'", "both", "See that one.")
    with style.style():
        figure = style.new_figure(recording, 3.8, str(recording.attrs("judgement")["verdict"]))
        _draw_recovery(figure.subplots(), recording)
        style.save(figure, path)
    return figure


def _draw_lags(axes: Axes, recording: Recording) -> None:
    found = recording["residual_tests/autocorrelation"]
    labels = [str(label) for label in recording["residual_tests/channel"]]
    samples = recording.shape("observations/time")[0] if "observations/time" in recording else 0
    lags = np.arange(1, found.shape[1])
    if samples:
        limit = 2 / np.sqrt(samples)
        axes.fill_between(lags[[0, -1]], -limit, limit, color="#CFCFCF", linewidth=0, label="white noise")
    for row, label in zip(found[:6], labels, strict=False):
        axes.plot(lags, row[1:], ".-", label=label if len(labels) > 1 else "residuals")
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.set_title("autocorrelation of the residuals")
    axes.set_xlabel("lag [samples]")
    axes.set_ylim(-1, 1)
    axes.legend(loc="lower right", fontsize=8)


def _draw_correlations(figure: Figure, axes: Axes, recording: Recording) -> None:
    about: dict[str, Any] = recording.attrs("covariance")
    labels = [str(label) for label in about["labels"]][:MOST_UNKNOWNS]
    count = len(labels)
    shown = recording["covariance/correlation"][:count, :count]
    image = axes.imshow(shown, vmin=-1, vmax=1, cmap="RdBu_r")
    axes.grid(False)
    axes.set_xticks(range(count), labels, rotation=45, ha="right", fontsize=8)
    axes.set_yticks(range(count), labels, fontsize=8)
    axes.set_title("correlations of the values")
    figure.colorbar(image, ax=axes, shrink=0.85)


def _draw_starts(axes: Axes, recording: Recording) -> None:
    loss, same = recording["assessment/starts/loss"], recording["assessment/starts/same"].astype(bool)
    about: dict[str, Any] = recording.attrs("assessment/starts")
    order = np.argsort(loss)
    place = np.arange(1, len(loss) + 1)
    for chosen, color, marker, label in (
        (same[order], style.COLORS[0], "o", "end at the fit"),
        (~same[order], style.COLORS[1], "s", "end elsewhere"),
    ):
        some = chosen & np.isfinite(loss[order])
        if some.any():
            axes.plot(place[some], 2 * loss[order][some], marker, color=color, markersize=5, label=label)
    axes.axhline(2 * float(about["loss_of_the_fit"]), color="#888888", linewidth=1, label="the fit")
    shown = 2 * np.append(loss[np.isfinite(loss)], float(about["loss_of_the_fit"]))
    axes.set_yscale("log")
    axes.set_ylim(shown.min() / 1.5, shown.max() * 3)  # differences within rounding look like none
    axes.set_xticks(place)
    axes.set_title(f"{len(loss)} other starts")
    axes.set_xlabel("start, best first")
    axes.set_ylabel("chi^2 at the end")
    axes.legend(loc="upper left", fontsize=8)


def _draw_recovery(axes: Axes, recording: Recording) -> None:
    error = recording["assessment/recovery/error"][:, :MOST_UNKNOWNS]
    about: dict[str, Any] = recording.attrs("assessment/recovery")
    labels = [str(label) for label in about["labels"]][:MOST_UNKNOWNS]
    spread = np.linspace(-0.2, 0.2, len(error))
    axes.axhspan(-INTERVAL, INTERVAL, color="#E4E4E4", linewidth=0, label="interval of 95 %")
    for place in range(len(labels)):
        axes.plot(place + spread, error[:, place], ".", color=style.COLORS[0], markersize=4)
        axes.plot([place - 0.25, place + 0.25], [error[:, place].mean()] * 2, color=style.COLORS[1])
    axes.set_xticks(range(len(labels)), labels, rotation=45, ha="right", fontsize=8)
    axes.set_ylim(top=1.3 * max(INTERVAL, float(np.nanmax(np.abs(error), initial=0))))
    axes.set_title(f"recovery: {len(error)} simulated fits, and their mean")
    axes.set_ylabel("found − true [standard errors]")
    axes.legend(loc="upper right", fontsize=8)
