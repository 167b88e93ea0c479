"""Numbers of cells as colours: one scale for all that is compared, images with positions, panels of one size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from simphys.plot.fields.grids import Plane

SIGNED, UNSIGNED = "RdBu_r", "viridis"  # told apart with any colour vision
MISSING = "#D0D0D0"
FEW_CELLS = 0.1
"""So many percent of a picture's numbers at either end do not make a scale that leaves all others without colour."""
FAR = 1.5
"""How many times the others' range they must reach for that."""
NEGLIGIBLE = 0.01
"""Up to such a part of a range on the other side of 0 a field has one sign."""
LONG = 5.0
"""Grids longer than so many times their width are drawn out of proportion."""


@dataclass(frozen=True)
class Scale:
    """Colours of numbers: diverging and centred at 0 where both signs occur; `extend` tells which ends are cut."""

    norm: Normalize
    color_map: str
    extend: str

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest number that has a colour of its own."""
        return float(self.norm.vmin or 0.0), float(self.norm.vmax or 0.0)


def scale_of(pictures: Iterable[np.ndarray], *, signed: bool = False) -> Scale:
    """One scale for all of some pictures; `signed` makes it diverge also where all numbers have one sign."""
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
    """A picture [across, up] of a plane, where it lies; its axes are not named yet."""
    extent = (*plane.limits(plane.axes[0]), *plane.limits(plane.axes[1]))
    axes.set_facecolor(MISSING)
    axes.grid(visible=False)
    size = np.ptp(np.reshape(extent, (2, 2)), axis=1)
    return axes.imshow(
        picture.T,
        origin="lower",
        extent=extent,
        norm=scale.norm,
        cmap=scale.color_map,
        aspect="equal" if 1 / LONG < size[1] / size[0] < LONG else "auto",
        **options,
    )


def draw_key(figure: Figure | SubFigure, axes: list[Axes], scale: Scale, label: str, **options: Any) -> Colorbar:
    """What the colours mean."""
    colors = ScalarMappable(scale.norm, scale.color_map)
    return figure.colorbar(colors, ax=axes, label=label, extend=scale.extend, **options)


def proportion(plane: Plane) -> float:
    """Height of the picture of a plane by its width, as it is drawn."""
    across, up = (float(np.ptp(plane.limits(axis))) for axis in plane.axes)
    return up / across if 1 / LONG < up / across < LONG else float(np.clip(up / across, 0.4, 2.0))


def name_axes(axes: Axes, plane: Plane, width: float, *, first: bool = True) -> None:
    """The names of a picture's axes, of the second one where it is the first in its row; `width` of a panel [inch]."""
    across, up = plane.labels
    axes.set_xlabel(across)
    if first:
        axes.set_ylabel(f"{plane.name}\n{up}".lstrip())
    else:
        axes.tick_params(labelleft=False)
    axes.xaxis.set_major_locator(MaxNLocator(int(np.clip(1.4 * width, 1, 6))))
    axes.yaxis.set_major_locator(MaxNLocator(int(np.clip(2.2 * width * proportion(plane), 1, 6))))
