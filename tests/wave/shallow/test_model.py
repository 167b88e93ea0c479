"""What a model of shallow water refuses."""

from __future__ import annotations

import pytest

from simphys.autograd import InputError
from simphys.wave.shallow import ShallowWater


def test_axes_are_closed_unless_told_otherwise() -> None:
    assert ShallowWater((4, 3), 0.5, 0.1).boundaries == ("closed", "closed")
    assert ShallowWater((4, 3), 0.5, 0.1, ("periodic", "closed")).closed == (False, True)


@pytest.mark.parametrize("cells", [(), (4, 3, 2), (4, 0)])
def test_counts_of_cells_that_make_no_plane_are_refused(cells: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"ShallowWater\.cells: .* 1 or 2 "):
        ShallowWater(cells, 0.5, 0.1)


@pytest.mark.parametrize("boundaries", [("closed",), ("closed", "open")])
def test_boundaries_that_do_not_fit_are_refused(boundaries: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"2 of \('closed', 'periodic'\), one for each axis"):
        ShallowWater((4, 3), 0.5, 0.1, boundaries)
