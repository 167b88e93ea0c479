"""Sub-steps at points between the cells of a regular grid: values read there, and strengths spread from there.

With the weights w_i(x) of `numerics.cubic` for the cells i around a point x, 4 along each axis,

    read:      y_r = sum_i w_i(x_r) u_i             spread:      f_i = sum_s w_i(x_s) q_s

They are the transposes of each other. So they are `from_grid` and `to_grid` with other weights, where each cell
gives its value as it is.
"""

from __future__ import annotations

from typing import Any

from simphys.numerics.element import element

from .from_grid import FromGrid
from .function import declare
from .grid import CELLS
from .nodes import Cubic
from .pattern import camel_case, name_sources
from .splines import SplinePattern
from .to_grid import ToGrid


@element
def take(u, r):
    return u


@take.adjoint
def adj_take(u, r, adj):
    return adj, 0.0 * r


def read_at(result: str, *, field: str, position: str, over: str, sides: str = "boundaries", grid: str = CELLS) -> Any:
    """Declare a sub-step that reads a field [*cells] at points [n, dim], between the cells of `model.cells`.

    - `over`: the index set of the points.
    - `sides`: attribute of the model with the kind of each side x-, x+, y-, ...; see `numerics.boundary`.
    - `grid`: another attribute of the model with the shape of the field.

    Cells are `model.spacing` apart. Returns a Function, to be applied to the model, the field and the positions.
    """
    sources = name_sources(nodes={"u": field}, offset={"r": position})
    return _declare(FromGrid(take, sources, results={result: ()}, over=over, weights=Cubic(sides), grid=grid))


def spread_from(
    result: str, *, strength: str, position: str, over: str, sides: str = "boundaries", even: str = ""
) -> Any:
    """Declare a sub-step that spreads the strengths [n] of points [n, dim] over the cells of `model.cells`.

    - `over`, `sides`: as in `read_at`.
    - `even`: attribute of the model with integers [n]: bit a is set if a point spreads evenly along axis a.

    Adjoints of strengths and positions are gathered; strengths are spread in the order of the points.
    Cells are `model.spacing` apart. Returns a Function, to be applied to the model, the strengths and the positions.
    """
    sources = name_sources(own={"u": strength}, offset={"r": position})
    return _declare(ToGrid(take, sources, results={result: ()}, over=over, weights=Cubic(sides, even)))


def _declare(made: SplinePattern) -> Any:
    """Declare the sub-step, named like its result."""
    (result,) = made.results
    made.name, made.source = camel_case(result), f"{made.source[:-5]}{result})"
    return declare(made)
