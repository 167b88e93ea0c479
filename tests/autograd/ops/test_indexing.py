"""Indices of every kind: elements read, adjoints, elements placed."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simphys.autograd import Tensor, grad, ops, tensor
from simphys.autograd.ops import indexing

SHAPES = arrays_of.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)


@st.composite
def shapes_and_indices(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    """A shape and a basic index, one of integer arrays (with repeats), a mask, or an array mixed with slices."""
    shape = draw(SHAPES)
    kind = draw(st.sampled_from(["basic", "integers", "mask", "mixed"]))
    if kind == "basic":
        return shape, draw(arrays_of.basic_indices(shape, allow_newaxis=True))
    if kind == "integers":
        return shape, draw(arrays_of.integer_array_indices(shape))
    if kind == "mask":
        return shape, draw(arrays_of.arrays(bool, shape))
    first = draw(arrays_of.arrays(int, draw(SHAPES), elements=st.integers(-shape[0], shape[0] - 1)))
    return shape, (first, ..., *[draw(st.slices(n)) for n in shape[1:2]])


def leaf(values: Any) -> Tensor:
    return tensor(values, dtype=np.float64, requires_grad=True)


@given(shapes_and_indices())
@settings(max_examples=150)
def test_reading_sends_each_adjoint_to_the_element_that_was_read(case: tuple[tuple[int, ...], Any]) -> None:
    shape, index = case
    rng = np.random.default_rng(2)
    x = leaf(rng.normal(size=shape))
    y = x[index]
    np.testing.assert_array_equal(y.data, x.data[index])
    u, v = rng.normal(size=y.shape), rng.normal(size=shape)
    expected = np.zeros(shape)
    np.add.at(expected, index, u)
    node = y.grad_fn
    assert node is not None
    np.testing.assert_array_equal(node.function.jvp(node, v, None), v[index])
    (adj,) = grad(y, x, [u])
    assert adj is not None
    np.testing.assert_allclose(adj.data, expected, rtol=1e-13, atol=1e-14)


@given(shapes_and_indices())
@settings(max_examples=150)
def test_placing_sends_each_adjoint_to_the_value_that_stayed_or_to_the_base(case: tuple[tuple[int, ...], Any]) -> None:
    shape, index = case
    rng = np.random.default_rng(3)
    base, values = leaf(rng.normal(size=shape)), leaf(rng.normal(size=np.zeros(shape)[index].shape))
    y = ops.put(base, index, values)
    origin = np.arange(base.size).reshape(shape)  # which number each element of the result was before
    origin[index] = base.size + np.arange(values.size).reshape(values.shape)
    before = np.concatenate([base.data.ravel(), values.data.ravel()])
    np.testing.assert_array_equal(y.data, before[origin])
    u = rng.normal(size=shape)
    expected = np.bincount(origin.ravel(), weights=u.ravel(), minlength=before.size)
    adj_base, adj_values = grad(y, (base, values), [u])
    assert adj_base is not None and adj_values is not None
    np.testing.assert_array_equal(adj_base.data.ravel(), expected[: base.size])
    np.testing.assert_array_equal(adj_values.data.ravel(), expected[base.size :])


@pytest.mark.parametrize(
    "index", [[0, 2], [], tensor([0, 2]), tensor([True, False, True]), np.int64(1), tensor(1), True]
)
def test_lists_tensors_and_numpy_numbers_index_as_in_numpy(index: Any) -> None:
    x = leaf([1.0, 2.0, 3.0])
    plain = index.data if isinstance(index, Tensor) else index
    y = x[index]
    np.testing.assert_array_equal(y.data, x.data[plain])
    (adj,) = grad(y, x, [np.ones(y.shape)])
    expected = np.zeros(3)
    np.add.at(expected, plain, 1.0)
    assert adj is not None
    np.testing.assert_array_equal(adj.data, expected)


@pytest.mark.parametrize(
    ("index", "repeats"),
    [
        (np.array([0, 2, 5]), False),
        (np.array([-5, -1]), False),
        (np.array([-6, 0]), True),  # both are the first of six
        (np.array([0, 2, 2]), True),
        (np.array([2, 0]), True),  # names none twice, but is not seen to
        (np.array(3), False),
        (np.array([True, False, True, True, False, True]), False),
        ((np.array([[0], [3]]), np.array([1, 2])), False),
        ((np.array([0, 3]), np.array([2, 2])), True),
    ],
)
def test_an_index_that_ascends_names_no_element_twice(index: Any, repeats: bool) -> None:
    assert indexing._key(index).repeats is repeats
    x = leaf(np.arange(18.0).reshape(6, 3))
    y = x[index]
    (adj,) = grad(y, x, [np.ones(y.shape)])
    expected = np.zeros((6, 3))
    np.add.at(expected, index, 1.0)
    assert adj is not None
    np.testing.assert_array_equal(adj.data, expected)


def test_a_basic_index_saves_nothing_that_could_change() -> None:
    x = leaf([1.0, 2.0, 3.0])
    y = x[1:]
    with x.writable() as values:
        values[...] = 0.0
    y.backward(np.ones(2))
    assert x.grad is not None and x.grad.data.tolist() == [0.0, 1.0, 1.0]


def test_of_values_placed_on_one_element_the_last_stays_and_receives_the_adjoint() -> None:
    values = leaf([1.0, 2.0, 3.0])
    y = ops.put(np.zeros(3), [2, 0, 2], values)
    assert y.data.tolist() == [2.0, 0.0, 3.0]
    (adj,) = grad(y, values, [[10.0, 20.0, 30.0]])
    assert adj is not None and adj.data.tolist() == [0.0, 10.0, 30.0]


def test_placing_leaves_the_base_as_it_was_and_promotes_it() -> None:
    base = tensor([1, 2, 3])
    y = ops.put(base, 0, 0.5)
    assert y.data.tolist() == [0.5, 2.0, 3.0]
    assert base.data.tolist() == [1, 2, 3]
    assert ops.put(np.zeros(2, np.float32), 0, 1.5).dtype == np.float32
    assert ops.put(np.zeros(2, np.float32), 0, np.array(1.5)).dtype == np.float64


@pytest.mark.parametrize("index", [3, (0, 0), [3], 0.5, [True]])
def test_an_index_that_does_not_fit_raises_numpys_error(index: Any) -> None:
    with pytest.raises(IndexError):
        leaf([1.0, 2.0, 3.0])[index]
