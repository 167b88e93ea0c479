"""The kinks of powers."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import grad, ops, tensor


def slopes(x: float, y: float) -> tuple[float, float]:
    """The derivatives of x ** y by x and by y."""
    inputs = [tensor(v, dtype=np.float64, requires_grad=True) for v in (x, y)]
    by_x, by_y = grad(ops.pow(*inputs), inputs)
    assert by_x is not None and by_y is not None
    return by_x.item(), by_y.item()


@pytest.mark.filterwarnings("error")
def test_a_power_of_zero_follows_pytorch() -> None:
    assert slopes(0.0, 0.0) == (0.0, 0.0)
    assert slopes(0.0, 1.0) == (1.0, 0.0)
    assert slopes(0.0, 3.0) == (0.0, 0.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("exponent", "slope"), [(0, 0.0), (0.0, 0.0), (1, 1.0), (2, 0.0), (2.5, 0.0)])
def test_a_power_of_zero_with_a_number_as_exponent_follows_pytorch(exponent: float, slope: float) -> None:
    x = tensor(0.0, requires_grad=True)
    (x**exponent).backward()
    assert x.grad is not None and x.grad.item() == slope


def test_a_root_of_zero_has_an_infinite_slope_and_warns() -> None:
    with pytest.warns(RuntimeWarning):
        assert slopes(0.0, 0.5) == (np.inf, 0.0)


def test_a_power_of_a_negative_base_has_a_slope_by_the_base_only() -> None:
    with pytest.warns(RuntimeWarning):
        by_base, by_exponent = slopes(-2.0, 3.0)
    assert by_base == 12.0
    assert np.isnan(by_exponent)


@pytest.mark.filterwarnings("error")
def test_a_power_does_not_compute_a_logarithm_without_need() -> None:
    x = tensor(-2.0, requires_grad=True)
    (x ** tensor(3.0)).backward()
    assert x.grad is not None and x.grad.item() == 12.0
