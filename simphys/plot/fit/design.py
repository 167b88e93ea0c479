"""Picture of the next experiment: what changes of it would tell, and which times tell most."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from simphys.assess.design import Design, Option
from simphys.plot import style
from simphys.simulator import SI, Units

MOST = 16
"""Largest number of changes that are drawn."""
COLOUR = {"without": 1, "twice": 0, "further sensor": 2, "longer": 3}


def design(found: Design, path: str | Path | None = None, *, title: str = "", units: Units = SI) -> Figure:
    """Draw the factor of the errors by each change, and for each part of the time the factor without it.

    Saved at `path` if given.
    """
    shown = [each for each in found.options if np.isfinite(each.gain)][:MOST]
    with style.style():
        figure = style.Picture(figsize=(style.WIDTH, 2.6 + 0.32 * len(shown)), layout="constrained")
        figure.units = units
        if title:
            figure.suptitle(title, x=0.01, ha="left")
        above, beneath = figure.subplots(2, 1, height_ratios=(0.6 + 0.32 * len(shown), 2.0))
        place = np.arange(len(shown))[::-1]
        colours = [style.COLORS[COLOUR[each.kind]] for each in shown]
        above.barh(place, [each.factor - 1 for each in shown], left=1, color=colours, height=0.7)
        above.axvline(1, color="#888888", linewidth=1)
        above.set_yticks(place, [name_option(each) for each in shown], fontsize=8)
        above.grid(visible=False, axis="y")
        above.set_title("factor of the errors, on average over the unknowns")
        p = len(found.labels)
        for number, (name, ends) in enumerate(found.times.items()):
            factor = np.exp(found.lost[name] / (2 * p))
            beneath.stairs(
                factor, ends, baseline=None, color=style.COLORS[number % len(style.COLORS)], label=name or None
            )
        if len(found.times) > 1:
            style.legend_beside(beneath)
        beneath.set_title("factor of the errors without a part of the time")
        style.label_time(beneath)
        style.save(figure, path)
    return figure


def name_option(option: Option) -> str:
    """Name a change in words."""
    return {
        "without": f"without {option.name}",
        "twice": f"{option.name} twice",
        "further sensor": f"and {option.name}",
        "longer": option.name,
    }[option.kind]
