"""Arrays, indices and element functions that do not fit end in an error before anything is launched."""

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.substep import edges, element, neighbours, per_element

from ..helpers.any_model import evaluate_step, make_model


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


@element
def drag(x, a, b):
    return a * b * x


@drag.adjoint
def adj_drag(x, a, b, adj):
    return a * b * adj


Scale = per_element(scale, over="nodes", own={"x": "x", "k": "k"})
Share = per_element(scale, over="nodes", own={"x": "x"}, shared={"k": "k"})
Stretch = per_element(stretch, over="nodes", own={"x": "x"}, constant={"h": "gravity"})
Kick = per_element(kick, over="nodes", own={"m": "m", "v": "v", "f": "f"})
Spring = edges(scale, between={"x": "x"}, onto="f", own={"k": "k"})
Grains = neighbours(drag, distance={"x": "x"}, marks={("a", "b"): "wall"}, onto="f", over="grains")
Blend = per_element(blend, over="nodes", own={"x": "x"}, gathered={"y": ("y", "pick"), "k": ("k", "pick")})


ENDS = np.array([[0, 1], [1, 2]])


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


@pytest.mark.parametrize("count", [1, 4])
def test_an_array_has_an_entry_for_each_edge(count: int) -> None:
    with pytest.raises(InputError, match=rf"Edges\(scale\): k has an entry for each of the 2 edges; found {count}"):
        Spring.apply(Given(ends=ENDS), ones(3), ones(count))
    assert Spring.apply(Given(ends=ENDS), ones(3), ones(2)).shape == (3,)


def test_a_mark_has_an_entry_for_each_particle() -> None:
    model = Given(box=[np.inf, np.inf], cutoff=1.0, skin=0.1, neighbours=4)
    with pytest.raises(InputError, match="wall has an entry for each of the 3 grains; found 2"):
        Grains.apply(model, ones(3, 2), np.ones(2))


@pytest.mark.parametrize("mode", ["fused", "nested"])
def test_so_it_is_in_a_rollout(mode: str) -> None:
    model = make_model(lambda m, p, s, _=None: m.State(Spring.apply(m, s.x, p.k)), {"k": (1,)}, {"x": (3,)}, ends=ENDS)
    with pytest.raises(InputError, match="k has an entry for each of the 2 edges; found 1"):
        evaluate_step(model, {"k": [1.0], "x": [0.0, 1.0, 3.0]}, mode=mode)


def test_index_arrays_of_what_is_no_model_may_be_replaced() -> None:
    """Else a launch would use the old ones; models never change."""
    given, x = Given(ends=ENDS), tensor(np.array([0.0, 1.0, 3.0]), requires_grad=True)
    assert Spring.apply(given, x, ones(2)).data.tolist() == [1.0, 1.0, -2.0]
    given.ends = np.array([[0, 2]] * 300)  # type: ignore[attr-defined]
    force = Spring.apply(given, x, ones(300))
    assert force.data.tolist() == [900.0, 0.0, -900.0]
    force[0].sum().backward()
    assert x.grad is not None and x.grad.data.tolist() == [-300.0, 0.0, 300.0]
