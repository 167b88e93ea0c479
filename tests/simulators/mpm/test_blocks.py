"""The blocks of particles that fused steps take at once."""

from __future__ import annotations

import functools

from simphys.simulators.mpm import fused

from ...helpers.contract import assert_same, evaluate
from .contract import PLANE, STEPS, TOLERANCE


def test_blocks_of_particles_are_filled_and_emptied_whole_and_in_part() -> None:
    system = functools.partial(PLANE, particles=37)()  # two whole blocks and a part
    assert fused.Variant.block == 16
    assert_same(evaluate(system, STEPS), evaluate(system, STEPS, mode="nested"), TOLERANCE)
