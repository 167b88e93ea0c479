"""Kernels of simulators get no memory twice, one of them to write, but where it is declared why that is right."""

from typing import no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime

from ..helpers.contract import evaluate
from ..helpers.overlaps import recorded_overlaps
from .test_contract import CONTRACTS

ti = runtime.ti
real = runtime.real()


@no_type_check
@kernel
def double(x: ti.types.ndarray(dtype=real, ndim=1), count: ti.i32, twice: ti.types.ndarray(dtype=real, ndim=1)):
    for i in range(count):
        twice[i] = 2 * x[i]


@pytest.mark.parametrize("mode", ["nested", "step", "fused"])
@pytest.mark.parametrize("simulator", CONTRACTS)
def test_every_overlap_is_declared(simulator: str, mode: str) -> None:
    """Forward and back, of a system and of a batch."""
    contract = CONTRACTS[simulator]
    with recorded_overlaps() as found:
        for case in (*contract.modes[:1], *contract.batches[:1]):
            evaluate(case.system(), case.steps, case.losses[0], mode=mode)
    assert not [overlap for overlap in found if not overlap.find_reason()]


def test_an_overlap_that_nobody_declared_is_seen() -> None:
    memory = np.arange(8.0, dtype=runtime.real_dtype())
    with recorded_overlaps() as found:
        double(memory[:6], 6, memory[2:])
    (overlap,) = found
    assert overlap.kernel == "double" and overlap.arguments == {"x", "twice"} and not overlap.find_reason()
