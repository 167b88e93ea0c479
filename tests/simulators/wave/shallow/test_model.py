"""The validation of shallow-water models."""

from __future__ import annotations

import pytest

from simphys.autograd import InputError
from simphys.simulators.wave.shallow import ShallowWater


def test_axes_are_closed_by_default() -> None:
    assert ShallowWater((4, 3), 0.5, 0.1).boundaries == ("closed", "closed")
    assert ShallowWater((4, 3), 0.5, 0.1, ("periodic", "closed")).closed == (False, True)


@pytest.mark.parametrize(
    ("cells", "message"), [((), ": .* 1 or 2 "), ((4, 3, 2), ": .* 1 or 2 "), ((4, 0), r"\[1\]: .*, at least 1")]
)
def test_invalid_numbers_of_cells_are_refused(cells: tuple[int, ...], message: str) -> None:
    with pytest.raises(InputError, match=rf"ShallowWater\.cells{message}"):
        ShallowWater(cells, 0.5, 0.1)


@pytest.mark.parametrize("boundaries", [("closed",), ("closed", "open")])
def test_invalid_boundaries_are_refused(boundaries: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"2 of \('closed', 'periodic'\), one for each axis"):
        ShallowWater((4, 3), 0.5, 0.1, boundaries)
