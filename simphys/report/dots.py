"""Dots of very many samples in an SVG, in the page's colours: one path in place of an element for each."""

from __future__ import annotations

import re

import numpy as np

GRAIN = 0.5
"""Width of the columns in which dots are gathered [points]."""
GAP = 0.75
"""Distance along a column that counts as covered, in radii of a dot."""
CIRCLE = re.compile(r'<path id="(?P<name>[^"]+)" d="M 0 (?P<radius>[\d.]+)\s*C [^"]*"')
DOTS = re.compile(r'(?:<use xlink:href="#(?P<name>[^"]+)" [^>]*/>\s*)(?:<use xlink:href="#(?P=name)" [^>]*/>\s*)+')
PLACE = re.compile(r' x="([-\d.]+)" y="([-\d.]+)"')
FILL = re.compile(r'style="fill: (?P<color>[^";]+)(?:; fill-opacity: (?P<opacity>[\d.]+))?"')


def join_dots(svg: str) -> str:
    """Replace each series of filled circles by one path, whose round ends are the dots; other marks stay.

    Dots of one column that nearly touch become one stroke: the size of the path does not grow with their number.
    """
    radii = {found["name"]: float(found["radius"]) for found in CIRCLE.finditer(svg)}

    def join(found: re.Match[str]) -> str:
        look = FILL.search(found[0])
        if found["name"] not in radii or look is None:
            return found[0]
        radius, places = radii[found["name"]], np.array(PLACE.findall(found[0]), float)
        opacity = f"; stroke-opacity: {look['opacity']}" if look["opacity"] else ""
        style = f"fill: none; stroke: {look['color']}{opacity}; stroke-width: {2 * radius:g}; stroke-linecap: round"
        return f'<path d="{draw_strokes(places, radius)}" style="{style}"/>\n'

    return DOTS.sub(join, svg)


def draw_strokes(places: np.ndarray, radius: float) -> str:
    """Draw the path of dots at places [N, 2] as vertical strokes, of length 0 for one alone."""
    column = np.round(places[:, 0] / GRAIN).astype(int)
    order = np.lexsort((places[:, 1], column))
    column, height = column[order], places[order, 1]
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(column) > 0) | (np.diff(height) > GAP * radius)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(order)) - 1
    rows = zip(column[first] * GRAIN, height[first], height[last], strict=True)
    return "".join([f"M{x:g} {low:.1f}" + (f"V{high:.1f}" if high > low else "h0") for x, low, high in rows])
