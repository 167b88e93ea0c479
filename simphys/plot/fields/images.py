"""Values of cells as colours: a common scale for all panels that are compared, images with positions, colour bars."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from simphys.plot import style
from simphys.plot.fields.grids import Plane

SIGNED, UNSIGNED = "RdBu_r", "viridis"  # distinguishable with any colour vision
MISSING, SOLID = "#D0D0D0", "#B8B8B8"
FEW_CELLS = 0.1
"""Percentage of a picture's values at either end that are ignored by the scale if they are outliers."""
FAR = 1.5
"""Range of outliers, relative to the range of the other values."""
NEGLIGIBLE = 0.01
"""Fraction of the range on the other side of 0 up to which a field counts as having one sign."""
LONG = 5.0
"""Ratio of length to width above which a grid is not drawn to scale."""


@dataclass(frozen=True)
class Scale:
    """Colour scale: diverging and centred at 0 if both signs occur; `extend` names the ends that are cut off."""

    norm: Normalize
    color_map: str
    extend: str

    @property
    def limits(self) -> tuple[float, float]:
        """Smallest and largest value of the scale."""
        return float(self.norm.vmin or 0.0), float(self.norm.vmax or 0.0)


def make_scale(pictures: Iterable[np.ndarray], *, signed: bool = False) -> Scale:
    """Make a common scale for some pictures; with `signed`, it is diverging even if all values have one sign."""
    given = [picture[np.isfinite(picture)] for picture in pictures]
    given = [numbers.astype(float) for numbers in given if numbers.size] or [np.zeros(1)]
    ends = np.array([np.percentile(numbers, (0, FEW_CELLS, 100 - FEW_CELLS, 100)) for numbers in given])
    low, high = ends[:, 0].min(), ends[:, 3].max()
    inner_low, inner_high = ends[:, 1].min(), ends[:, 2].max()
    if signed or (low < -NEGLIGIBLE * high and high > -NEGLIGIBLE * low):
        reach, inner = max(-low, high), max(-inner_low, inner_high)
        reach = (inner if reach > FAR * inner > 0 else reach) or 1.0
        return Scale(Normalize(-reach, reach), SIGNED, _extend(low < -reach, high > reach))
    inner_range = inner_high - inner_low
    first = inner_low if inner_high - low > FAR * inner_range > 0 else low
    last = inner_high if high - inner_low > FAR * inner_range > 0 else high
    if first == last:
        first, last = first - 0.01 * (abs(first) or 1.0), last + 0.01 * (abs(last) or 1.0)
    return Scale(Normalize(first, last), UNSIGNED, _extend(low < first, high > last))


def _extend(below: bool, above: bool) -> str:
    return {(False, False): "neither", (True, False): "min", (False, True): "max"}.get((below, above), "both")


def draw_plane(axes: Axes, plane: Plane, picture: np.ndarray, scale: Scale, **options: Any) -> AxesImage:
    """Draw the picture [across, up] of a plane at its position; the axes are not labelled yet."""
    extent = (*plane.limits(plane.axes[0]), *plane.limits(plane.axes[1]))
    axes.set_facecolor(MISSING)
    axes.grid(visible=False)
    size = np.ptp(np.reshape(extent, (2, 2)), axis=1)
    image = axes.imshow(
        picture.T,
        origin="lower",
        extent=extent,
        norm=scale.norm,
        cmap=scale.color_map,
        aspect="equal" if 1 / LONG < size[1] / size[0] < LONG else "auto",
        **options,
    )
    if plane.is_depth(plane.axes[1]):
        axes.set_ylim(extent[3], extent[2])
    return image


def draw_obstacle(axes: Axes, plane: Plane, distance: np.ndarray) -> list[Artist]:
    """Fill the inside of an obstacle, whose signed distance is [across, up], and draw its outline."""
    if not (distance < 0).any():
        return []
    where = [plane.places(axis) for axis in plane.axes]
    low = float(distance.min()) - 1.0
    inside = axes.contourf(*where, distance.T, levels=[low, 0.0], colors=[SOLID], zorder=3)
    return [inside, axes.contour(*where, distance.T, levels=[0.0], colors=[style.INK], linewidths=0.9, zorder=4)]


def draw_colorbar(figure: Figure | SubFigure, axes: list[Axes], scale: Scale, label: str, **options: Any) -> Colorbar:
    """Draw the colour bar."""
    colors = ScalarMappable(scale.norm, scale.color_map)
    return figure.colorbar(colors, ax=axes, label=label, extend=scale.extend, **options)


def proportion(plane: Plane) -> float:
    """Ratio of height to width of the picture of a plane, as drawn."""
    across, up = (float(np.ptp(plane.limits(axis))) for axis in plane.axes)
    return up / across if 1 / LONG < up / across < LONG else float(np.clip(up / across, 0.4, 2.0))


def label_axes(axes: Axes, plane: Plane, width: float, *, first: bool = True) -> None:
    """Label the axes of a picture, the second one only if it is the first in its row; `width` of a panel [inch]."""
    across, up = plane.labels
    axes.set_xlabel(across)
    if first:
        axes.set_ylabel(f"{plane.name}\n{up}".lstrip())
    else:
        axes.tick_params(labelleft=False)
    axes.xaxis.set_major_locator(MaxNLocator(int(np.clip(1.4 * width, 1, 6))))
    axes.yaxis.set_major_locator(MaxNLocator(int(np.clip(2.2 * width * proportion(plane), 1, 6))))
