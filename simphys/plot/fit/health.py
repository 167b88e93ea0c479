"""Health of a gradient: the adjoint along time, its fitted growth rate, the usable horizon, and the events."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simphys.autograd.errors import InputError
from simphys.diagnose.health import Health
from simphys.diagnose.health.growth import log_norms
from simphys.plot import style
from simphys.plot.components import FEW, draw_components, draw_elements, name_components, name_elements
from simphys.plot.fit.events import ROW, draw_events
from simphys.simulator.events import group_by_kind

TANGENT, ADJOINT, NOISE = style.COLORS[2], style.COLORS[0], style.COLORS[1]
LARGEST = 600.0
"""Largest logarithm that is drawn; beyond it numbers leave the range of f64."""


def health(
    found: Health,
    path: str | Path | None = None,
    *,
    title: str = "",
    units: Mapping[str, str],
    bodies: Collection[str] = (),
) -> Figure:
    """Draw |adjoint| of each field along time, its growth and that of a tangent compared with 1/eps, and events.

    The part of the horizon without a usable gradient is shaded. `units` of the fields, by name; `bodies` names the
    fields of bodies, [n, dim]. Pinned components are left out. Saved at `path` if given.
    Errors: InputError if no step is sound.
    """
    if not found.steps:
        raise InputError("picture of a gradient's health", "needs a sound step", "none", "Correct the start.")
    with style.style():
        kinds = len(group_by_kind(found.events))
        heights = [*[2.3] * len(found.adjoint), 3.2, *[0.5 + ROW * kinds] * (kinds > 0)]
        figure = style.Picture(figsize=(style.WIDTH, 0.6 + sum(heights)), layout="constrained")
        figure.units = found.units
        remark = "" if found.fault is None else f"{found.fault.where} is not finite"
        if title or remark:
            figure.suptitle(": ".join([part for part in (title, remark) if part]), x=0.01, ha="left")
        panels = list(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights))
        for axes, name in zip(panels, found.adjoint, strict=False):
            axes.set_title(f"by {style.words(name)}")
            unit = units.get(name, "")
            axes.set_ylabel(f"|∂loss/∂{style.words(name)}|\n[{style.per_unit(unit)}]")
            _draw_field(axes, found, name, of_bodies=name in bodies)
        _draw_growth(panels[len(found.adjoint)], found)
        if found.events:
            draw_events(panels[-1], found.events)
        for axes in panels:
            _shade_unusable(axes, found)
        style.label_time(panels[-1])
        panels[-1].set_xlim(0, found.times[-1])
        figure.align_ylabels(panels[: len(found.adjoint) + 1])
        style.save(figure, path)
    return figure


def _draw_field(axes: Axes, found: Health, name: str, *, of_bodies: bool) -> None:
    adjoint, moving = found.adjoint[name], found.moving[name]
    size = np.where(np.isfinite(adjoint) & moving, np.abs(adjoint), np.nan)
    if not (size > 0).any():
        axes.text(0.5, 0.5, "zero throughout", transform=axes.transAxes, ha="center", va="center")
        return
    axes.set_yscale("log", nonpositive="clip")  # a spread that begins at zero extends to the lower edge
    log = log_norms(adjoint[:, moving])
    if moving.sum() > FEW:
        axes.plot(found.times, _exp(log), color=style.INK, linewidth=0.8, label="norm of all")
    if of_bodies:
        nodes = np.flatnonzero(moving.any(axis=1))
        draw_components(axes, found.times, size, nodes)
        name_components(axes, nodes, size.shape[2])
    else:
        draw_elements(axes, found.times, size)
        name_elements(axes, size.shape[1:])
    _draw_fit(axes, found, log)


def _draw_fit(axes: Axes, found: Health, log_size: np.ndarray, *, label: bool = False) -> None:
    """Draw the fitted growth through the middle of a curve, over the fitted range; its times count from the end."""
    if found.rate is None:
        return
    back = found.times[-1] - found.times
    fitted = (back >= found.rate.begin) & (back <= found.rate.end)
    known = fitted & np.isfinite(log_size)
    if known.any():
        line = log_size[known].mean() + found.rate.value * (back[fitted] - back[known].mean())
        named = f"fitted: {style.number(found.rate.value)} / s" if label else None
        axes.plot(found.times[fitted], _exp(line), "--", color=style.INK, linewidth=1.1, label=named)


def _draw_growth(axes: Axes, found: Health) -> None:
    axes.set_yscale("log", nonpositive="mask")
    axes.plot(found.times, _exp(found.log_growth), color=ADJOINT, label="adjoint, back from the end")
    _draw_fit(axes, found, found.log_growth, label=True)
    if found.log_tangent_growth is not None:
        rate = found.tangent_rate
        named = "" if rate is None else f", {style.number(rate.value)} / s"
        axes.plot(
            found.times, _exp(found.log_tangent_growth), color=TANGENT, label=f"tangent, forward from the start{named}"
        )
    axes.axhline(1 / found.eps, color=NOISE, linestyle="-.", label="1/eps")
    axes.set_ylabel("growth [1]")
    whole = found.usable_steps == found.steps
    much = "the whole horizon" if whole else f"the last {found.usable_steps} of {found.steps} steps"
    axes.set_title(f"usable gradient: {much}, {style.moment(axes, found.usable_steps * found.dt)}", pad=20)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, columnspacing=1.2, handlelength=1.6, fontsize=8.5)


def _shade_unusable(axes: Axes, found: Health) -> None:
    """Shade the part of the horizon without a usable gradient."""
    if found.usable_steps < found.steps:
        edge = (found.steps - found.usable_steps) * found.dt
        axes.axvspan(0, edge, color=style.SHADE, linewidth=0, zorder=0)
        axes.axvline(edge, color=NOISE, linewidth=0.9)


def _exp(log_size: np.ndarray) -> np.ndarray:
    clipped = np.exp(np.clip(log_size, -LARGEST, LARGEST))
    return np.where(np.isneginf(log_size), np.nan, clipped)  # zero cannot be drawn on a log axis
