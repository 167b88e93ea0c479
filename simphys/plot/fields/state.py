"""Fields of the state along time, for a simulator without bodies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.components import draw_elements, name_elements
from simphys.plot.fields.grids import is_bulk
from simphys.record import Recording

REMEDY = "A run records the fields of the state that do not belong to bodies."


def fields(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw every recorded field along time: a curve per value if there are few, else the median and the middle 90 %.

    Fields that fill a grid are left out: snapshots show them.
    Saved at `path` if given. Errors: NotRecorded if the state has bodies alone, or no motion was recorded.
    """
    names = [name for name in recording.keys("fields") if not is_bulk(recording, f"{style.FIELDS}/{name}/value")]
    if not names and recording.keys("fields"):
        raise style.NotRecorded("picture 'fields'", "draws small fields", "only large ones", "See their snapshots.")
    if not names:
        style.require(recording, "fields", ("fields",), REMEDY)
    groups = [f"{style.FIELDS}/{name}" for name in names]
    recorded, *values = style.frames(recording, f"{groups[0]}/time", *(f"{group}/value" for group in groups))
    time, *values = style.sound_frames(recorded, *values)
    kept = [place for place, each in enumerate(values) if np.any(each)]  # a force that is nowhere applied tells nothing
    if not kept:
        raise style.NotRecorded("picture 'fields'", "draws fields that are not 0 throughout", "none", "See the others.")
    names, groups = [names[place] for place in kept], [groups[place] for place in kept]
    values = [values[place] for place in kept]
    with style.style():
        figure = style.new_figure(recording, 0.6 + 2.5 * len(names), style.describe_end(recording, time, recorded))
        panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for axes, name, group, of in zip(panels, names, groups, values, strict=True):
            unit = style.unit_of(recording, f"{group}/value")
            draw_elements(axes, time, of, style.names_of_field(recording, name))
            name_elements(axes, of.shape[1:])
            axes.set_ylabel(style.with_unit(style.words(name), unit))
            low, high = style.bounds(of)
            axes.set_title(f"{style.words(name)}: from {low} to {high} {'' if unit == '1' else unit}".rstrip())
        style.label_time(panels[-1])
        figure.align_ylabels(panels)
        style.save(figure, path)
    return figure
