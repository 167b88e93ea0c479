"""Fixtures for the tests of mass-spring systems."""

from __future__ import annotations

import pytest

from simphys.autograd import runtime
from simphys.rollout.engine import forms


@pytest.fixture(params=["serial", "gather"])
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with either kind of kernels, regardless of the size of the system."""
    gather = request.param == "gather"
    monkeypatch.setattr(runtime, "parallel", lambda work_us: gather)
    monkeypatch.setattr(forms, "GPU_SERIAL", 0 if gather else 10**6)
    return str(request.param)
