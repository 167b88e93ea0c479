"""Parameters that no body has are refused by name, and a search survives them."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd.errors import UnphysicalValue
from simphys.simulator.physical import require_not_negative, require_positive


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
