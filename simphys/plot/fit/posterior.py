"""Samples of the posterior: histograms beside the normal distribution of the standard errors, and pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.record import Recording

MOST = 6
"""Largest number of unknowns that are drawn."""


def posterior(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw a matrix of histograms, and of pairs beneath the diagonal; values in standard errors from the fit.

    Saved at `path` if given. Errors: NotRecorded if nothing was sampled.
    """
    style.require(recording, "posterior", ("posterior/value",), "Only `simphys sample` records samples.")
    about: dict[str, Any] = recording.attrs("posterior")
    labels = [str(label) for label in about["labels"]]
    values, best, error = (recording[f"posterior/{name}"] for name in ("value", "best", "standard_error"))
    away = (values.reshape(-1, values.shape[-1]) - best) / error
    count = min(len(labels), MOST)
    reach = min(8.0, 1.05 * float(np.abs(away[:, :count]).max()))
    normal = np.linspace(-reach, reach, 200)
    with style.style():
        figure = style.new_figure(recording, 1.2 + 1.55 * count)
        panels = figure.subplots(count, count, squeeze=False, sharex="col")
        for row in range(count):
            for column in range(count):
                axes = panels[row, column]
                if column > row:
                    axes.remove()
                    continue
                axes.tick_params(labelsize=8)
                axes.set_xlim(-reach, reach)
                if row == column:
                    axes.hist(away[:, row], bins=30, density=True, color=style.COLORS[0], alpha=0.6)
                    axes.plot(normal, np.exp(-(normal**2) / 2) / np.sqrt(2 * np.pi), color=style.COLORS[1], linewidth=1)
                    axes.set_yticks([])
                    axes.set_title(labels[row], fontsize=9)
                else:
                    axes.plot(away[:, column], away[:, row], ".", color=style.COLORS[0], markersize=1.5, alpha=0.5)
                    axes.set_ylim(-reach, reach)
                if column == 0 and row:
                    axes.set_ylabel(labels[row], fontsize=9)
                if row == count - 1:
                    axes.set_xlabel("standard errors", fontsize=8)
        style.save(figure, path)
    return figure
