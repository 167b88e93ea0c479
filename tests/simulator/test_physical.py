"""Parameters that no body has are refused by name, and a search survives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import UnphysicalValue
from simphys.simulator.physical import require_not_negative, require_positive
from simphys.simulators.smoke import Smoke
from simphys.simulators.sph import SPH


def test_the_first_wrong_value_is_named() -> None:
    require_positive("it", {"k": np.array([1.0, 2.0])}, "k")
    require_not_negative("it", {"k": np.array([0.0, 2.0])}, "k")
    for value in (-1.0, np.nan, np.inf):
        wrong = {"k": np.array([[1.0, 1.0], [1.0, value]])}
        for require, constraint in ((require_positive, "positive and"), (require_not_negative, "0 or more, and")):
            with pytest.raises(UnphysicalValue, match=rf"it: k: {constraint} finite; found k\[1, 1\] = {value:g}\."):
                require("it", wrong, "k")
    with pytest.raises(UnphysicalValue, match=r"found k = 0\."):
        require_positive("it", {"k": np.array(0.0)}, "k")


FLUID = {"rest_density": 1000.0, "sound_speed": 10.0, "viscosity": 0.0, "slip_length": 0.0}


@pytest.mark.parametrize(
    ("model", "good", "name", "value"),
    [
        *((Smoke, {"viscosity": 0.0}, "viscosity", value) for value in (-0.1, np.inf)),
        *((SPH, FLUID, "rest_density", value) for value in (0.0, -1.0, np.inf)),
        *((SPH, FLUID, "sound_speed", value) for value in (0.0, -1.0, np.inf)),
        *((SPH, FLUID, "viscosity", value) for value in (-1.0, np.inf)),
        *((SPH, FLUID, "slip_length", value) for value in (-1.0, np.inf)),
    ],
)
def test_fluids_have_numbers_of_the_right_sign(model: Any, good: dict[str, float], name: str, value: float) -> None:
    params = {key: np.array(number) for key, number in good.items()}
    model._bound.check(params)
    with pytest.raises(UnphysicalValue, match=name):
        model._bound.check({**params, name: np.array(value)})
