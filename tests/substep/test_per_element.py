"""Elements of all kinds of index sets: nodes, cells of a grid, entries of arrays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.substep import element, per_element


@element
def mix(u, k, c, w):
    return u * u * k + c * w * u


@mix.adjoint
def adj_mix(u, k, c, w, adj):
    return (2 * u * k + c * w) * adj, u * u * adj, w * u * adj


@mix.tangent
def jvp_mix(u, k, c, w, du, dk, dc):
    return (2 * u * k + c * w) * du + u * u * dk + dc * w * u


SOURCES: Any = {
    "own": {"u": "u"},
    "gathered": {"k": ("k", "kinds")},
    "entries": {"c": ("c", 1)},
    "of_model": {"w": "weight"},
}
KINDS = np.array([0, 1, -1, 2, 0, 1], np.int32)
MODEL = SimpleNamespace(cells=(2, 3), kinds=KINDS, weight=np.linspace(1.0, 2.0, 6))


@pytest.mark.parametrize("over", ["cells", "nodes"])
@pytest.mark.parametrize("shared_out", [False, True], ids=["one thread", "shared out"])
def test_elements_of_any_index_set_read_arrays_of_all_kinds(
    over: str, shared_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: shared_out)
    substep = per_element(mix, over=over, **SOURCES)
    random = np.random.default_rng(0)
    u, k, c = (random.uniform(0.5, 1.5, shape) for shape in (MODEL.cells if over == "cells" else 6, 3, 2))
    found = substep.apply(MODEL, tensor(u), tensor(k), tensor(c)).data
    flat, picked = u.ravel(), np.where(KINDS >= 0, k[KINDS], 0.0)
    expected = flat**2 * picked + c[1] * MODEL.weight * flat
    np.testing.assert_allclose(found, expected.reshape(u.shape), rtol=1e-14)
    inputs = [tensor(values, requires_grad=True) for values in (u, k, c)]
    gradcheck(lambda *x: substep.apply(MODEL, *x), inputs)
    dot_product_test(lambda *x: substep.apply(MODEL, *x), inputs)


@element
def scale(u, k):
    return u * k


@scale.adjoint
def adj_scale(u, k, adj):
    return k * adj, u * adj


def test_what_entries_share_is_one_number_even_if_it_has_their_shape() -> None:
    substep = per_element(scale, over="entries", own={"u": "u"}, shared={"k": "k"})
    assert substep.apply(None, tensor([[1.0, 2.0]]), tensor(3.0)).data.tolist() == [[3.0, 6.0]]
    assert substep.apply(None, tensor(2.0), tensor(3.0)).data.tolist() == 6.0
    with pytest.raises(InputError, match="returns a number for scale; found a vector of 2"):
        substep.apply(None, tensor([1.0, 2.0]), tensor([3.0, 4.0]))


@element
def place(u, at):
    return u * at


@place.adjoint
def adj_place(u, at, adj):
    return at.dot(adj)


def test_what_tells_the_place_of_a_cell_needs_a_grid() -> None:
    placed: Any = {"own": {"u": "u"}, "index": "at", "results": {"at": (2,)}}
    found = per_element(place, over="cells", **placed).apply(MODEL, tensor(np.ones((2, 3))))
    assert found.data[1, 2].tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="at tells where a cell lies, so `nodes` of the model is a grid; found None"):
        per_element(place, over="nodes", **placed).apply(MODEL, tensor(np.ones(6)))


@pytest.mark.parametrize("cells", [None, 6, (2, 0), (np.int64(2), 3)])
def test_cells_are_those_of_a_grid(cells: Any) -> None:
    with pytest.raises(InputError, match="`cells` of the model is a tuple with the number of cells along each axis"):
        per_element(scale, over="cells", own={"u": "u", "k": "k"}).apply(
            SimpleNamespace(cells=cells), tensor(np.ones((2, 3))), tensor(np.ones((2, 3)))
        )
