"""A network has two layers with tanh and the right derivatives; its weights are used like other parameters."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.nn import Linear, Network, Weights, pattern, tanh


def leaf(*shape: int, seed: int = 0) -> Tensor:
    return tensor(np.random.default_rng(seed).normal(size=shape), requires_grad=True)


@pytest.mark.parametrize("rows", [(), (4,), (2, 3)])
def test_the_derivative_of_a_layer_is_right_for_one_row_and_for_many(rows: tuple[int, ...]) -> None:
    inputs = (leaf(3, 5), leaf(3, seed=1), leaf(*rows, 5, seed=2))
    assert gradcheck(Linear.apply, inputs, tolerance=1e-9).outcome == "passed"
    dot_product_test(Linear.apply, inputs, tolerance=1e-12)


def test_a_layer_is_a_matrix_and_a_shift() -> None:
    weight, bias, x = leaf(3, 5), leaf(3, seed=1), leaf(5, seed=2)
    np.testing.assert_allclose(Linear.apply(weight, bias, x).data, weight.data @ x.data + bias.data, rtol=1e-6)


def test_a_network_is_two_layers_with_tanh() -> None:
    network = Network(inputs=5, hidden=4, outputs=2)
    weights, x = network.initial(seed=3), leaf(5)
    W1, b1, W2, b2 = (each.data for each in weights.tensors())
    np.testing.assert_allclose(network(weights, x).data, np.tanh(W2 @ np.tanh(W1 @ x.data + b1) + b2), rtol=1e-6)
    assert network(weights, leaf(7, 5)).shape == (7, 2)


def test_the_derivative_of_a_network_is_right_by_all_weights() -> None:
    network = Network(inputs=3, hidden=4, outputs=2)
    inputs = [leaf(*shape, seed=seed) for seed, shape in enumerate(network.shapes().values())]
    report = gradcheck(lambda *given: network(Weights(*given[:4]), given[4]), [*inputs, leaf(3, seed=9)])
    assert report.outcome == "passed"


def test_weights_are_drawn_from_a_seed_within_the_bound() -> None:
    network = Network(inputs=30, hidden=20, outputs=10)
    first, again, other = network.initial_arrays(1), network.initial_arrays(1), network.initial_arrays(2)
    assert all((first[name] == again[name]).all() for name in first)
    assert (first["hidden_weight"] != other["hidden_weight"]).all()
    assert 0.95 * np.sqrt(6 / 50) < abs(first["hidden_weight"]).max() < np.sqrt(6 / 50)
    assert not first["hidden_bias"].any() and not first["output_bias"].any()


def test_a_pattern_is_waves_of_one_frequency() -> None:
    waves = pattern(5, dt=0.1, frequency=3.0, waves=4)
    np.testing.assert_allclose(waves[2], [np.sin(0.6), np.cos(0.6), -np.sin(0.6), -np.cos(0.6)], atol=1e-14)


def test_tanh_is_that_of_the_operations() -> None:
    x = leaf(6)
    np.testing.assert_allclose(tanh(x).data, np.tanh(x.data), rtol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "match"),
    [
        (((3,), (3,), (5,)), r"weight: shape \[outputs, inputs\]"),
        (((3, 5), (4,), (5,)), r"bias: shape \[3\], one entry per row of weight"),
        (((3, 5), (3,), (4,)), r"x: rows of 5, one entry per column of weight"),
        (((3, 5), (3,), ()), r"x: rows of 5"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(shapes: tuple[tuple[int, ...], ...], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Linear.apply(*[leaf(*shape) for shape in shapes])


def test_a_network_needs_units_in_each_layer() -> None:
    with pytest.raises(InputError, match=r"Network.hidden: at least 1; found 0"):
        Network(inputs=3, hidden=0, outputs=1)
