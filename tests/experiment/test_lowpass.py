"""The low-pass filter: what it leaves of a wave, that nothing wraps round, its adjoint."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import gradcheck, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.experiment.lowpass import Lowpass, convolved, gaussian

from ..helpers.rounding import assert_equal_but_for_rounding

DT = 0.01


def test_slow_waves_stay_and_fast_ones_go() -> None:
    times = np.arange(4000) * DT
    middle = slice(1000, 3000)  # away from the ends, beyond which there are zeros
    for frequency, left in ((1e-3, 1.0), (2.0, 2**-0.5), (4.0, 2**-2.0), (12.0, 2**-18.0)):
        wave = np.cos(2 * np.pi * frequency * times)
        found = convolved(wave, 0, gaussian(2.0, DT, 4000))
        np.testing.assert_allclose(found[middle], left * wave[middle], atol=2e-6)


def test_it_is_the_sum_of_its_definition_and_nothing_wraps_round() -> None:
    x = np.random.default_rng(0).normal(size=(3, 40, 2))
    kernel = gaussian(4.0, DT, 40)
    both = np.concatenate([kernel[:0:-1], kernel])
    assert both.sum() == pytest.approx(1, abs=1e-13)
    expected = np.empty_like(x)
    for b, c in np.ndindex(3, 2):
        whole = np.convolve(x[b, :, c], both)
        expected[b, :, c] = whole[len(kernel) - 1 : len(kernel) - 1 + 40]
    assert_equal_but_for_rounding(convolved(x, 1, kernel), expected, ulps=200)  # by Fourier transforms


def test_it_is_its_own_adjoint() -> None:
    x = tensor(np.random.default_rng(1).normal(size=(2, 30, 2)), requires_grad=True)
    kernel = gaussian(5.0, DT, 30)
    assert gradcheck(lambda x: Lowpass.apply(x, 1, kernel), (x,)).outcome == "passed"
    dot_product_test(lambda x: Lowpass.apply(x, 1, kernel), (x,), tolerance=1e-12)


def test_the_precision_stays() -> None:
    assert convolved(np.ones(50, np.float32), 0, gaussian(5.0, DT, 50)).dtype == np.float32


def test_a_frequency_of_which_no_period_fits_into_the_measurement_is_refused() -> None:
    with pytest.raises(
        InputError,
        match=r"of each frequency fits into the measurement; found a period of 1 in a measurement of 0\.4",
    ):
        gaussian(1.0, DT, 40)
