"""Weighted sums of neighbouring cells, and vectors with components first: against NumPy and finite differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from simphys.autograd import Tensor, gradcheck, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.substep import element, per_element, stencil
from simphys.substep.stencil import Term

from ..helpers.rounding import assert_equal_but_for_rounding
from .grids import Grid
from .stencils import GRIDS, WEIGHTS, apply_by_numpy

ALL = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
Sums = stencil("sums", WEIGHTS)
Mean = stencil("mean", {"s": lambda dim: [Term(0.5, (0,) * dim), Term(0.5, (0,) * (dim - 1) + (1,))]})
Nothing = stencil("nothing", {"v": lambda dim: [[], [Term(1.0, (0,) * dim, 0)]]})


@pytest.fixture(params=["one thread", "shared out"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: request.param == "shared out")


def make_inputs(grid: Grid) -> tuple[Tensor, Tensor]:
    random = np.random.default_rng(1)
    s, v = random.standard_normal(grid.cells), random.standard_normal((2, *grid.cells))
    return tensor(s, requires_grad=True), tensor(v, requires_grad=True)


@ALL
@pytest.mark.usefixtures("_loops")
def test_sums_are_those_of_the_weights(grid: Grid) -> None:
    s, v = make_inputs(grid)
    assert_equal_but_for_rounding(Sums.apply(grid, s, v).data, apply_by_numpy(s.data, v.data))
    after = np.roll(s.data, -1, axis=-1)
    assert_equal_but_for_rounding(Mean.apply(grid, s).data, 0.5 * (s.data + after), size=np.abs(s.data).max())


@ALL
@pytest.mark.usefixtures("_loops")
def test_adjoint_and_tangent_are_right(grid: Grid) -> None:
    inputs = make_inputs(grid)
    gradcheck(lambda *x: Sums.apply(grid, *x), inputs)
    dot_product_test(lambda *x: Sums.apply(grid, *x), inputs)


def test_a_sum_without_terms_is_zero() -> None:
    grid = GRIDS["small"]
    _, v = make_inputs(grid)
    found = Nothing.apply(grid, v)
    np.testing.assert_array_equal(found.data, np.stack([0 * v.data[0], v.data[0]]))
    gradcheck(lambda x: Nothing.apply(grid, x), (v,))


def test_arrays_and_shifts_that_do_not_fit_are_refused() -> None:
    grid = GRIDS["small"]
    s, v = make_inputs(grid)
    with pytest.raises(InputError, match=r"s has an entry for each cell: its shape is \[4, 5\]"):
        Mean.apply(grid, s[1:])
    with pytest.raises(InputError, match=r"\[c, \.\.\.\] with 2 or more components"):
        Sums.apply(grid, s, s)
    with pytest.raises(InputError, match=r"-1, 0 or 1"):
        stencil("far", {"s": lambda dim: [Term(1.0, (2,) * dim)]}).apply(grid, s)
    with pytest.raises(InputError, match=r"the sums of all arrays"):
        stencil("both", {"s": Mean.pattern.weights["s"], "v": WEIGHTS["v"]}).apply(grid, s, v)


@element
def push(u, p, inside, h):
    return inside * u * p * h


@push.adjoint
def adj_push(u, p, inside, h, adj):
    return h * p * inside * adj, h * (inside * u).dot(adj)


@push.tangent
def jvp_push(u, p, inside, h, du, dp):
    return inside * h * (du * p + u * dp)


Push = per_element(
    push,
    over="cells",
    own={"u": "velocity", "p": "pressure"},
    constant={"h": "h"},
    inner={"inside": "closed"},
    results={"velocity": "u"},
    components_first=True,
)


@dataclass(frozen=True)
class Closed(Grid):
    """A grid with walls along some axes."""

    closed: tuple[bool, ...] = ()


@pytest.mark.parametrize("closed", [(True, True), (False, True), (True, False)])
@pytest.mark.parametrize("cells", [(2, 2), (3, 20)])
@pytest.mark.usefixtures("_loops")
def test_cells_know_the_first_ones_of_axes_and_vectors_have_their_components_first(
    cells: tuple[int, int], closed: tuple[bool, bool]
) -> None:
    grid = Closed(cells, closed=closed)
    p, u = make_inputs(grid)
    expected = 0.5 * u.data * p.data
    if closed[0]:
        expected[0, 0] = 0
    if closed[1]:
        expected[1, :, 0] = 0
    assert_equal_but_for_rounding(Push.apply(grid, u, p, 0.5).data, expected)
    gradcheck(lambda *x: Push.apply(grid, *x, 0.5), (u, p))
    dot_product_test(lambda *x: Push.apply(grid, *x, 0.5), (u, p))
