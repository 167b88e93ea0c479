"""Pendulums of a batch on several threads."""

from __future__ import annotations

import pytest

from simphys.autograd import runtime

from ...helpers.contract import assert_same, evaluate
from .contract import STEPS, build


@pytest.mark.parametrize(("kind", "integrator"), [("chain", "rk4"), ("spherical", "variational")])
def test_members_are_shared_out_among_threads(kind: str, integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system = build(kind, integrator, batch=3)
    serial = evaluate(system, STEPS)
    monkeypatch.setattr(runtime, "parallel", lambda _: True)
    # Kernels with and without a loop over threads are compiled apart: some processors round a sum otherwise in one.
    assert_same(evaluate(system, STEPS), serial, 1e-12)
