"""Room around the arrays of kernels, for mutants of indices, which else would end the process."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from simphys.autograd.kernels import device
from simphys.simulator import Array
from simphys.substep.launched import Entries

launched = importlib.import_module("simphys.substep.launched")  # the name in the package is that of the function

MARGIN = 200_000
"""Numbers before and behind each array."""


def with_margins(array: Array) -> Array:
    """Copy an array to the middle of a longer one."""
    around = np.zeros(array.size + 2 * MARGIN, array.dtype)
    middle = around[MARGIN : MARGIN + array.size]
    middle[:] = array.reshape(-1)
    return middle


@contextmanager
def room() -> Iterator[None]:
    """Bring arrays to kernels with room around them, within a context."""
    bring = launched._bring

    def bring_with_margins(array: Any) -> Entries:
        return Entries(with_margins(bring(array).numbers))

    with patch.object(device, "to_device", with_margins), patch.object(launched, "_bring", bring_with_margins):
        yield
