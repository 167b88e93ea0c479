"""What differences make of a wave, as the operators themselves have it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from simphys.numerics.staggered import ORDERS, make_operators, staggered_difference
from simphys.numerics.stencil import second_difference
from simphys.simulator.waves import Waves, differences_of_second, differences_of_staggered


@pytest.mark.parametrize("order", ORDERS)
def test_staggered_differences_of_a_wave_are_those_of_their_operators(order: int) -> None:
    operator, *_ = make_operators(order, 60)
    for angle in (0.3, 1.0, 2.5):
        wave = np.sin(angle * (np.arange(60) - 30.5))  # odd about the middle of cell 30, at 30 + 1/2
        found = differences_of_staggered(staggered_difference(order), np.array([angle]))
        assert (operator @ wave)[30] == pytest.approx(found[0], rel=1e-12)


@pytest.mark.parametrize("order", [2, 4, 8])
def test_second_differences_of_a_wave_are_those_of_their_coefficients(order: int) -> None:
    first, *others = second_difference(order)
    for angle in (0.3, 1.0, 2.5):
        wave = np.cos(angle * np.arange(-6, 7))
        bend = first * wave[6] + sum(c * (wave[6 + m] + wave[6 - m]) for m, c in enumerate(others, 1))
        found = differences_of_second(second_difference(order), np.array([angle]))
        assert found[0] ** 2 == pytest.approx(-bend, rel=1e-12)


def test_staggered_shear_waves_of_order_4_need_half_the_cells_of_order_2() -> None:
    """Levander 1988: five cells in a wavelength, where order 2 takes ten or more."""

    def fewest(order: int) -> float:
        waves = Waves(1.0, 1.0, 1e-3, partial(differences_of_staggered, staggered_difference(order)))
        return next(cells for cells in np.arange(3, 30, 0.1) if abs(waves.speed_error(1 / cells)) < 0.01)

    assert fewest(4) == pytest.approx(5, abs=0.5) and fewest(2) == pytest.approx(13, abs=0.5)
