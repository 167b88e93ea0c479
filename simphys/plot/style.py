"""Common parts of all pictures: style, axis labels with units, saving, and the error for missing data."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simphys.autograd.errors import InputError, StorageError
from simphys.record import Recording
from simphys.scenefile.body_names import PIECES, BodyNames, given_names, name_bodies
from simphys.scenefile.channel_names import VECTORS, name_channels, name_rows
from simphys.simulator import SI, Units

WIDTH = 9.0
"""Width of a picture [inch]: at a README's 900 pixels the text is then 14 pixels high."""

# Okabe and Ito's colours, distinguishable with any colour vision (jfly.uni-koeln.de/color).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK, SHADE = "#222222", "#ECECEC"
AXIS_NAMES = "xyz"
BODIES = "particles/nodes"
POSITION, VELOCITY, PINNED = f"{BODIES}/position", f"{BODIES}/velocity", f"{BODIES}/pinned"
FIELDS = "fields"
MANY_ENTRIES = 4  # of a legend in one line
DOT_SIZES = (3.2, 4.5)
"""Smallest and largest diameter of the dot of a sample [points]."""
DOTS = 150
"""Number of samples that may have the largest dots."""
NOTHING = 1e-12  # part of the largest magnitude below which a bound of values is 0
FRAME_NUMBERS = 1 << 23  # largest number of values of a field along time in a picture
HUGE = np.float64(1e100)  # a motion beyond it has blown up, and squares overflow; f64, to compare f32 with

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#888888",
    "axes.formatter.use_mathtext": True,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.prop_cycle": f"cycler('color', {list(COLORS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.xmargin": 0.01,
    "figure.titlesize": 12,
    "figure.titleweight": "bold",
    "grid.color": "#E4E4E4",
    "legend.borderaxespad": 0.2,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "savefig.dpi": 150,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}


class NotRecorded(InputError):
    """Error for a run without the data of a picture."""


def style() -> AbstractContextManager[None]:
    """Set the style of all pictures within a context, whatever the user's own settings."""
    return matplotlib.style.context(_STYLE, after_reset=True)


def require(recording: Recording, picture: str, paths: tuple[str, ...], remedy: str) -> None:
    """Raise NotRecorded unless the run holds all of `paths`."""
    missing = [path for path in paths if path not in recording]
    if missing:
        held = ", ".join(name for name in recording.keys() if name not in ("h5md", "scene"))  # noqa: SIM118 a method
        constraint = f"needs {', '.join(missing)} of the run {recording.name}"
        raise NotRecorded(f"picture {picture!r}", constraint, f"only {held or 'a scene'}", remedy)


class Picture(Figure):
    """A figure that a notebook shows, also without pyplot."""

    units: Units = SI
    """Units of length and time of the run that it shows."""

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.savefig(file, format="png", dpi=80)
        return file.getvalue()


def new_figure(recording: Recording, height: float, remark: str = "") -> Figure:
    """Make an empty figure of `height` [inch] with the scene's title, the experiment of several, and a remark."""
    figure = Picture(figsize=(WIDTH, height), layout="constrained")
    figure.units = recording.units
    title = ": ".join(str(part) for part in (recording.scene.get("title"), recording.part, remark) if part)
    if title:
        figure.suptitle(title, x=0.01, ha="left")
    return figure


def save(figure: Figure, path: str | Path | None) -> None:
    """Write the picture, in the format given by the file's suffix; do nothing for None."""
    if path is None:
        return
    try:
        figure.savefig(path)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(
            f"picture {path} cannot be written: {reason}. Name another folder, or free space."
        ) from error


def legend_above(axes: Axes) -> None:
    """Add a legend in one line to the right of the title, where it covers no data."""
    columns = len(axes.get_legend_handles_labels()[0])
    size = None if columns <= MANY_ENTRIES else "small"  # beside a title
    axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1), ncols=columns, columnspacing=1.2, handlelength=1.4, fontsize=size
    )


def legend_of_all(figure: Figure, panels: Iterable[Axes]) -> None:
    """Add one legend for several panels below them, with an entry for each name."""
    named = {name: each for axes in panels for each, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named), columnspacing=1.2)


def legend_beside(axes: Axes, title: str | None = None) -> None:
    """Add a legend to the right of the axes, for any number of curves."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), title=title, handlelength=1.2, borderaxespad=0)


def draw_samples(axes: Axes, time: np.ndarray, values: np.ndarray, *, color: str, label: str) -> None:
    """Draw samples [N] as translucent dots, wider than a line over them: both are seen, however many there are."""
    smallest, largest = DOT_SIZES
    size = max(smallest, largest * min(1.0, np.sqrt(DOTS / max(time.size, 1))))
    axes.plot(time, values, "o", color=color, markersize=size, markeredgewidth=0, alpha=0.45, label=label)


def words(name: str) -> str:
    """Write the name of a field or a parameter in words; names that a scene gives stay as they are."""
    return name.replace("_", " ")


def with_unit(name: str, unit: str) -> str:
    """Format an axis label."""
    return f"{name} [{unit}]" if unit else name


def _units_of(axes: Axes) -> Units:
    root: Any = axes.figure.figure  # a part of a figure knows the whole
    return root.units if isinstance(root, Picture) else SI


def label_time(axes: Axes, *, upward: bool = False) -> None:
    """Label the axis of time, by default the horizontal one."""
    (axes.set_ylabel if upward else axes.set_xlabel)(with_unit("time", _units_of(axes).time))


def moment(axes: Axes, time: float) -> str:
    """Format a time with its unit."""
    return f"{number(time)} {_units_of(axes).time}"


def per_unit(unit: str) -> str:
    """Format the unit of a gradient of the loss."""
    if not unit:
        return "loss"
    return f"loss / {f'({unit})' if '/' in unit else unit}"


def unit_of(recording: Recording, path: str) -> str:
    """Unit of a dataset; '' if none is recorded."""
    return str(recording.attrs(path).get("unit", ""))


def body_names(recording: Recording) -> BodyNames:
    """Name the bodies of a run."""
    return name_bodies(recording.scene)


def names_of_field(recording: Recording, field: str) -> BodyNames | None:
    """Name the entries of a field along its first axis, of bodies or others; None if nothing is known of them."""
    group = f"{group_of_field(recording, field)}/value"
    if group in recording and len(recording.shape(group)) > (3 if field in VECTORS else 2):
        return None  # of several members, whose axis is the first
    return name_rows(recording.scene, field)


def channel_names(recording: Recording) -> BodyNames:
    """Name the channels of the control of a run."""
    return name_channels(recording.scene)


def piece_names(recording: Recording) -> tuple[str, ...]:
    """Name the pieces of material of a run of particles."""
    scene: dict[str, Any] = recording.scene
    given = given_names(scene) or PIECES.get(str(scene.get("simulator", {}).get("name")), ())
    return tuple(name or f"piece {place}" for place, name in enumerate(given))


def is_of_bodies(recording: Recording, field: str) -> bool:
    """True if a field of the state belongs to bodies, [n, dim]."""
    return f"{BODIES}/{field}" in recording


def group_of_field(recording: Recording, field: str) -> str:
    """Path under which a field of the state is recorded along time."""
    return f"{BODIES if is_of_bodies(recording, field) else FIELDS}/{field}"


def unit_of_field(recording: Recording, field: str) -> str:
    """Unit of a field of the state; '' if none is recorded."""
    path = f"{group_of_field(recording, field)}/value"
    return unit_of(recording, path) if path in recording else ""


def number(value: float) -> str:
    """Format a number with three significant digits and a true minus sign."""
    mantissa, *exponent = f"{value:.3g}".split("e")
    return "e".join([mantissa, *(str(int(digits)) for digits in exponent)]).replace("-", "\N{MINUS SIGN}")


def bounds(values: np.ndarray) -> tuple[str, str]:
    """Format the smallest and the largest of values; what is nothing beside the other, such as 2e-183, is 0."""
    both = float(np.min(values)), float(np.max(values))
    least = NOTHING * max(map(abs, both))
    low, high = (number(0.0 if abs(each) < least < np.inf else each) for each in both)
    return low, high


def fraction(value: float) -> str:
    """Format a fraction of the horizon: '1/64', or 'whole'."""
    return "whole" if value >= 1 else str(Fraction(value).limit_denominator(1000))


def free_nodes(recording: Recording, nodes: int) -> np.ndarray:
    """Indices of the nodes that can move."""
    pinned = recording[PINNED].astype(bool) if PINNED in recording else np.zeros(nodes, bool)
    return np.flatnonzero(~pinned)


def frames(recording: Recording, *paths: str) -> list[np.ndarray]:
    """Read datasets along the same time; long ones are thinned to the rows that a picture can show.

    Rows that are missing in one of them, because the run stopped while writing them, are left out.
    """
    largest = max(int(np.prod(recording.shape(path))) for path in paths)
    every = -(-largest // FRAME_NUMBERS)
    found = [recording.thinned(path, every) for path in paths]
    rows = min(map(len, found))
    return [array[:rows] for array in found]


def describe_end(recording: Recording, time: np.ndarray, recorded: np.ndarray) -> str:
    """Describe an early end, such as 'blown up after 3 s'; `time` holds the sound ones of the times `recorded`."""
    status = str(recording.attrs("motion")["status"]) if "motion" in recording else "completed"
    if status == "completed" and len(time) == len(recorded):
        return ""
    when = f"{number(time[-1])} {recording.units.time}"
    return f"{'blown up' if status == 'completed' else status} after {when}"


def sound_frames(time: np.ndarray, *values: np.ndarray) -> list[np.ndarray]:
    """Drop the frames of time [T] and values [T, ...] that are not finite, or huge; a sound run has none."""
    sound = np.ones(len(time), bool)
    for value in values:
        sound &= (np.abs(value) < HUGE).reshape(len(time), -1).all(axis=1)  # False for NaN too
    if not sound.any():
        raise NotRecorded("picture of a motion", "needs a finite frame", "none", "Start the run with a smaller dt.")
    return [array[sound] for array in (time, *values)]
