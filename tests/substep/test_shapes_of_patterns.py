"""Every pattern refuses an element function that returns another shape than its result has, or has no name for."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.autograd.kernels.runtime import ti
from simphys.substep import (
    Move,
    Parameters,
    dense,
    edges,
    element,
    faces,
    from_grid,
    neighbours,
    pairs,
    per_element,
    sequence,
    sides,
    to_grid,
    total,
)


@element
def scale(x, k):
    return k * x


@scale.adjoint
def adj_scale(x, k, adj):
    return k * adj, x * adj


@element
def share(r, x, k):
    return k * x


@share.adjoint
def adj_share(r, x, k, adj):
    return 0.0 * r, k * adj, x * adj


@element
def slide(x, k, t):
    return x + t * k


@slide.adjoint
def adj_slide(x, k, t, adj):
    return adj, t * adj, k * adj


@element
def spread(x):
    return ti.Vector([x, 2.0 * x])


@spread.adjoint
def adj_spread(x, y, adj_y):
    return y * adj_y


@spread.tangent
def jvp_spread(x, y, dx):
    return y * dx


@element
def double(x):
    return 2.0 * x


@double.adjoint
def adj_double(x, adj):
    return 2.0 * adj


@double.tangent
def jvp_double(x, dx):
    return 2.0 * dx.dot(dx)


def make_press() -> Any:
    """Make it anew, as what is known about the shapes of a function is kept."""

    @element
    def press(x, k):
        return k * x

    @press.adjoint
    def adj_press(x, k, adj):
        return k * adj, k * x.dot(adj)

    return press


def make_caller() -> Any:
    """Make a function that calls another one, and what the compiler has in kernels alone."""

    @element
    def caller(x, k):
        return scale(x, ti.cast(1.0, ti.f64) * k)

    @caller.adjoint
    def adj_caller(x, k, adj):
        return scale(adj, k), scale(x, adj)

    return caller


def make_search() -> Any:
    """Make a function with a loop whose end Python may not reach; it captures a number, and calls another function."""
    start = 1.0

    @element
    def search(x, k):
        y = start * x
        while True:
            y = scale(y, k)
            if ti.abs(k).sum() > 9.0:
                break
        return y

    @search.adjoint
    def adj_search(x, k, adj):
        return adj, x * adj

    return search


def make_root() -> tuple[Any, Any]:
    """Make a function that calls what does not exist, and return where that is: once it exists, that is kept."""

    @element
    def root(x):
        return square_root(x)  # type: ignore[name-defined]  # noqa: F821

    @root.adjoint
    def adj_root(x, adj):
        return 0.5 * adj / x

    return root, root


def make_call_of_root() -> tuple[Any, Any]:
    root, _ = make_root()

    @element
    def call(x):
        return root(x)

    @call.adjoint
    def adj_call(x, adj):
        return adj

    return call, root


def make_rule() -> tuple[Any, Any]:
    @element
    def plain(x):
        return x

    @plain.adjoint
    def adj_plain(x, adj):
        return np.missing(adj)  # type: ignore[attr-defined]

    return plain, adj_plain


MODEL = SimpleNamespace(
    cells=(3, 4),
    open_sides=(0, 3),
    spacing=0.5,
    ends=np.array([[0, 1], [1, 2]]),
    box=(math.inf, math.inf),
    cutoff=1.0,
    skin=0.1,
    neighbours=4,
    limit=3,
)
SHARED: Any = {"shared": {"k": "k"}}
SLIDE = Move(slide, Parameters(own={"x": "x"}, shared={"k": "k"}), ["x"])
NODES: Any = {"offset": {"r": "r"}, "own": {"x": "x"}, "shared": {"k": "k"}, "results": {"u": ()}}


def ones(*shape: int) -> Any:
    return tensor(np.ones(shape))


PATTERNS: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "edges": (edges(scale, between={"x": "x"}, onto="heat", **SHARED), (ones(3), ones(2)), "heat"),
    "per_element": (per_element(scale, over="nodes", own={"x": "x"}, **SHARED), (ones(3), ones(2)), "scale"),
    "per_entry": (per_element(scale, over="entries", own={"x": "x"}, **SHARED), (ones(3, 2), ones(2)), "scale"),
    "faces": (faces(scale, between={"x": "x"}, onto="heat", **SHARED), (ones(3, 4), ones(2)), "heat"),
    "sides": (sides(scale, cells={"x": "x"}, onto="heat", **SHARED), (ones(3, 4), ones(2)), "heat"),
    "a number of sides": (
        sides(scale, cells={"x": "x"}, of_side={"k": "k"}, onto="heat"),
        (ones(3, 4), ones(4, 2)),
        "heat",
    ),
    "per_cell": (per_element(scale, over="cells", own={"x": "x"}, **SHARED), (ones(3, 4), ones(2)), "scale"),
    "pairs": (pairs(scale, between={"x": "x"}, onto="heat", over="bodies", **SHARED), (ones(3), ones(2)), "heat"),
    "neighbours": (
        neighbours(scale, distance={"x": "x"}, onto="heat", over="bodies", result=(), **SHARED),
        (ones(3, 2), ones()),
        "heat",
    ),
    "total": (total(scale, over="nodes", own={"x": "x"}, **SHARED), (ones(3), ones(2)), "scale"),
    "to_grid": (to_grid(share, over="grains", **NODES), (ones(3, 2), ones(3), ones(2)), "u"),
    "from_grid": (
        from_grid(share, over="grains", offset={"r": "r"}, nodes={"x": "x"}, shared={"k": "k"}, results={"u": ()}),
        (ones(3, 2), ones(3, 4), ones(2)),
        "u",
    ),
    "sequence": (
        sequence(state=["x"], move=SLIDE, events=[], over="balls", duration="time step", limit="limit"),
        (ones(3), ones(2), 0.1),
        "x",
    ),
    "dense": (dense(spread, weight="W", bias="b", given="x", result="y"), (ones(3, 2), ones(3), ones(2)), "y"),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_vector_is_no_result_where_a_number_is_declared(pattern: str) -> None:
    substep, arrays, result = PATTERNS[pattern]
    with pytest.raises(InputError, match=rf"{__file__}:\d+, .*: it returns a number for {result}; found a vector of 2"):
        substep.apply(MODEL, *arrays)


def test_so_it_is_where_python_needs_other_functions() -> None:
    substep = per_element(make_caller(), over="cells", own={"x": "x"}, shared={"k": "k"})
    with pytest.raises(
        InputError, match=rf"{__file__}:\d+, caller: it returns a number for caller; found a vector of 2"
    ):
        substep.apply(MODEL, ones(3, 4), ones(2))
    assert (substep.apply(MODEL, ones(3, 4), ones()).data == 1).all()


def test_so_it_is_with_a_loop_that_would_not_end() -> None:
    substep = per_element(make_search(), over="cells", own={"x": "x"}, shared={"k": "k"})
    with pytest.raises(
        InputError, match=rf"{__file__}:\d+, search: it returns a number for search; found a vector of 2"
    ):
        substep.apply(MODEL, ones(3, 4), ones(2))


def test_a_tangent_has_the_shape_of_the_result() -> None:
    substep = per_element(double, over="nodes", own={"x": "x"})
    with pytest.raises(InputError, match=r"jvp_double: it returns a vector of 2 for the tangent of double; found a nu"):
        substep.apply(MODEL, ones(3, 2))


@pytest.mark.parametrize("charges", [ones(3, 3), ones(3, 1)], ids=["two lengths", "a vector of one"])
def test_operands_that_do_not_fit_are_named_with_their_place(charges: Any) -> None:
    substep = per_element(make_press(), over="nodes", own={"x": "x", "k": "k"})
    with pytest.raises(InputError, match=rf"{__file__}:\d+, press: .*unsupported operand type.*Tensor \(2\)"):
        substep.apply(MODEL, ones(3, 2), charges)


@pytest.mark.parametrize(
    ("make", "name"),
    [(make_root, "square_root"), (make_rule, "np.missing"), (make_call_of_root, "square_root")],
    ids=["a function", "an attribute of a module", "a function that another one calls"],
)
def test_a_name_that_stands_for_nothing_is_refused_with_its_line(make: Callable[[], Any], name: str) -> None:
    function, place = make()
    substep = per_element(function, over="nodes", own={"x": "x"})
    line = place.__wrapped__.__code__.co_firstlineno + 2
    with pytest.raises(InputError, match=rf"{__file__}:{line}, {place.__name__}: its names are defined; found {name}"):
        substep.apply(MODEL, ones(3))


def test_a_shared_entry_of_cells_is_one_of_the_array() -> None:
    substep = per_element(scale, over="cells", own={"x": "x"}, entries={"k": ("k", 3)})
    with pytest.raises(InputError, match="k has an entry with the number 3; found 3 entries"):
        substep.apply(MODEL, ones(3, 4), ones(3))
    assert (substep.apply(MODEL, ones(3, 4), ones(4)).data == 1).all()
