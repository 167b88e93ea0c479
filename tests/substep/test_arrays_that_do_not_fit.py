"""Arrays, indices and element functions that do not fit end in an error before anything is launched."""

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.substep import edges, element, per_element


@element
def scale(x, k):
    return k * x


@scale.adjoint
def adj_scale(x, k, adj):
    return k * adj, x * adj


@element
def stretch(x, h):
    return x * h


@stretch.adjoint
def adj_stretch(x, h, adj):
    return h * adj


@element
def kick(m, v, f):
    return v + f / m


@kick.adjoint
def adj_kick(m, v, f, adj):
    return -f.dot(adj) / (m * m), adj, adj / m


@element
def blend(x, y, k):
    return x + k * y


@blend.adjoint
def adj_blend(x, y, k, adj):
    return adj, k * adj, y * adj


Scale = per_element(scale, over="nodes", own={"x": "x", "k": "k"})
Share = per_element(scale, over="nodes", own={"x": "x"}, shared={"k": "k"})
Stretch = per_element(stretch, over="nodes", own={"x": "x"}, constant={"h": "gravity"})
Kick = per_element(kick, over="nodes", own={"m": "m", "v": "v", "f": "f"})
Spring = edges(scale, between={"x": "x"}, onto="f", own={"k": "k"})
Blend = per_element(blend, over="nodes", own={"x": "x"}, gathered={"y": ("y", "pick"), "k": ("k", "pick")})


class Given:
    """A model with some index arrays."""

    def __init__(self, **arrays: Any) -> None:
        vars(self).update({name: np.array(array) for name, array in arrays.items()})


def ones(*shape: int) -> Any:
    return tensor(np.ones(shape))


@pytest.mark.parametrize(
    ("apply", "message"),
    [
        (
            lambda: Kick.apply(None, ones(3), ones(3, 2), ones(3, 2)),
            "it returns a number for kick; found a vector of 2",
        ),
        (lambda: Share.apply(None, ones(3), ones(1)), "it returns a number for scale; found a vector of 1"),
        (lambda: Scale.apply(None, ones(3, 2), ones(3)), "adj_scale: it returns a number for the adjoint of k"),
    ],
    ids=["a result", "a vector of one component", "an adjoint"],
)
def test_element_functions_return_the_shapes_that_are_declared(apply: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"{__file__}:\d+, .*{message}"):
        apply()


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (3, r"an entry for each of the 3 nodes; found gravity of shape \[2\]"),
        (2, r"not as long as both the vectors and the number of nodes; found gravity of shape \[2\]"),
    ],
)
def test_a_constant_array_has_an_entry_for_each_element(nodes: int, message: str) -> None:
    with pytest.raises(InputError, match=f"{message}.*`shared`"):
        Stretch.apply(None, ones(nodes, 2), np.array([0.0, -9.81]))
    Stretch.apply(None, ones(nodes, 2), np.ones((nodes, 2)))
    Stretch.apply(None, ones(nodes), np.ones(nodes))


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ([[-1, 0], [1, 2]], r"lies in 0 \.\.\. 2; found -1 \.\.\. 2"),
        ([[0, 3], [1, 2]], r"lies in 0 \.\.\. 2; found 0 \.\.\. 3"),
        ([[0, 1], [2, 2]], "joins two different nodes; found edge 1 from 2 to itself"),
    ],
)
def test_an_edge_joins_two_nodes_that_exist(ends: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Spring.apply(Given(ends=ends), ones(3), ones(2))


def test_arrays_gathered_by_one_index_have_one_length() -> None:
    model = Given(pick=[0, 1, 4])
    with pytest.raises(InputError, match="gathered by `pick` have one length; found k with 50 entries beside 5"):
        Blend.apply(model, ones(3), ones(5), ones(50))
    assert Blend.apply(model, ones(3), ones(5), ones(5)).data.tolist() == [2.0, 2.0, 2.0]
