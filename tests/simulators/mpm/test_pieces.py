"""The pieces that particles are divided into on several threads, or if results must not depend on their number."""

from __future__ import annotations

import functools

import pytest

from simphys.autograd import runtime

from ...helpers.contract import assert_same, evaluate
from .contract import COLLIDERS, PLANE, STEPS, TOLERANCE


@pytest.mark.parametrize("build", [PLANE, COLLIDERS])
def test_particles_in_pieces_move_as_all_at_once(build: functools.partial, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece adds to grids of its own; 37 is no multiple of 4."""
    system = functools.partial(build, particles=37)()
    expected = evaluate(system, STEPS, mode="nested")
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    assert_same(evaluate(system, STEPS, deterministic=True), expected, TOLERANCE)
