"""Rules over regular grids: cells, faces, open sides, stencils, banded matrices along an axis, sparse matrices."""

from __future__ import annotations

import functools
from typing import Any

from simphys.substep import Along, along, faces, per_element, sides, stencil, weighted
from simphys.substep.stencil import Term

from .formulas import advect, blend, conduct, leak, merge, place_in, seep, squash
from .world import Rule


def _shift(dim: int, axis: int, steps: int) -> tuple[int, ...]:
    return tuple([steps if other == axis else 0 for other in range(dim)])


def _mean(dim: int) -> list[Term]:
    """Weights of all kinds of neighbours, along the diagonal, too."""
    terms = [Term(-0.5, _shift(dim, axis, 1)) for axis in range(dim)]
    return [Term(1.0, (0,) * dim), Term(0.3, (1,) * dim), Term(0.3, (-1,) * dim), *terms]


def _gradient(dim: int) -> list[list[Term]]:
    return [[Term(0.5, _shift(dim, axis, 1)), Term(-0.5, _shift(dim, axis, -1))] for axis in range(dim)]


def _divergence(dim: int) -> list[Term]:
    return [Term(w, _shift(dim, axis, s), axis) for axis in range(dim) for w, s in ((0.7, 1), (-0.7, -1))]


def _turned(dim: int) -> list[list[Term]]:
    """Each component takes the one after it; the last has no terms in space."""
    return [[] if axis == 2 else [Term(0.4, _shift(dim, axis, -1), (axis + 1) % dim)] for axis in range(dim)]


Blend = per_element(merge, over="cells", own={"p": "u", "q": "k"}, shared={"s": "c"})
BlendEntry = per_element(merge, over="cells", own={"p": "u", "q": "k"}, entries={"s": ("a", 1)})
BlendArrows = per_element(blend, over="cells", own={"p": "w", "q": "o", "s": "u"})
BlendFields = per_element(blend, over="cells", own={"p": "f", "q": "g", "s": "u"}, components_first=True)
ShiftFields = per_element(blend, over="cells", own={"p": "f"}, shared={"q": "t", "s": "c"}, components_first=True)
SquashFields = per_element(squash, over="cells", own={"p": "f"}, components_first=True)
PlaceIn = per_element(place_in, over="cells", own={"u": "u", "c": "k"}, index="at", inner={"opened": "wraps"})
Conduct = faces(seep, between={"d": "u"}, shared={"k": "c"}, onto="heat")
Wrap = faces(seep, between={"d": "u"}, shared={"k": "c"}, onto="heat", periodic="wraps")
Spread = faces(conduct, between={"d": "w"}, shared={"k": "c"}, onto="drift", periodic="wraps")
Advect = faces(
    advect, both={("low", "high"): "k"}, between={"d": "u"}, constant={"c": "h"}, onto="heat", periodic="wraps"
)
Leak = sides(leak, cells={"u": "u"}, of_side={"s": "outside"}, shared={"k": "c"}, onto="heat")
Mean = stencil("mean", {"u": _mean, "k": lambda dim: [Term(2.0, (0,) * dim)]})
Gradient = stencil("gradient", {"u": _gradient, "f": _turned})
Divergence = stencil("divergence", {"f": _divergence})
CellsOfNodes = weighted("cover", of="a", by="cells_of_nodes", rows="cells", columns="nodes")
NodesOfCells = weighted("sample", of="u", by="nodes_of_cells", rows="nodes", columns="cells")
NodesOfNodes = weighted("smooth", of="a", by="nodes_of_nodes", rows="nodes", columns="nodes")
NarrowBlend = per_element(seep, own={"d": "n", "k": "m"}, over="narrow")


@functools.cache
def _sums_along(dim: int) -> Any:
    terms = {"u": Along("first_band", 0), "k": Along("last_band", dim - 1), "n": Along("widen", dim - 1, "narrow")}
    return along("sums", terms)


@functools.cache
def _part_along(dim: int) -> Any:
    return along("part", {"u": Along("cut", dim - 1)}, over="narrow")


U, K = "cells", "number"
RULES = {
    "blend cells": Rule((U, U, K), (U,), Blend.apply),
    "blend cells with an entry": Rule((U, U, "numbers"), (U,), BlendEntry.apply),
    "blend arrows": Rule(("arrows", "arrows", U), ("arrows",), BlendArrows.apply),
    "blend fields": Rule(("fields", "fields", U), ("fields",), BlendFields.apply),
    "shift fields": Rule(("fields", "vector", K), ("fields",), ShiftFields.apply),
    "squash fields": Rule(("fields",), ("fields",), SquashFields.apply),
    "place in": Rule((U, U), (U,), PlaceIn.apply),
    "conduct": Rule((U, K), (U,), Conduct.apply),
    "wrap": Rule((U, K), (U,), Wrap.apply),
    "spread": Rule(("arrows", K), ("arrows",), Spread.apply),
    "advect": Rule((U, U), (U,), lambda model, k, u: Advect.apply(model, k, u, 0.6)),
    "leak": Rule((U, "of sides", K), (U,), Leak.apply, lambda model: bool(model.open_sides)),
    "mean": Rule((U, U), (U,), Mean.apply),
    "gradient": Rule((U, "fields"), ("fields",), Gradient.apply),
    "divergence": Rule(("fields",), (U,), Divergence.apply),
    "sums along": Rule((U, U, "narrow"), (U,), lambda model, *given: _sums_along(model.dim).apply(model, *given)),
    "part along": Rule((U,), ("narrow",), lambda model, u: _part_along(model.dim).apply(model, u)),
    "narrow": Rule(("narrow", "narrow"), ("narrow",), NarrowBlend.apply),
    "cells of nodes": Rule(("numbers",), (U,), CellsOfNodes.apply),
    "nodes of cells": Rule((U,), ("numbers",), NodesOfCells.apply),
    "nodes of nodes": Rule(("numbers",), ("numbers",), NodesOfNodes.apply),
    "add cells": Rule((U, U), (U,), lambda model, u, k: u + k),
    "add arrows": Rule(("arrows", "arrows"), ("arrows",), lambda model, w, o: w - o),
    "add fields": Rule(("fields", "fields"), ("fields",), lambda model, f, g: f + 0.5 * g),
}
