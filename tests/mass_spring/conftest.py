"""What several tests of masses and springs share."""

from __future__ import annotations

import pytest

from simphys.autograd import runtime
from simphys.mass_spring import engine


@pytest.fixture(params=["serial", "gather"])
def variant(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of kernels, whatever the size of the system."""
    gather = request.param == "gather"
    monkeypatch.setattr(runtime, "parallel", lambda work_us: gather)
    monkeypatch.setattr(engine, "GPU_SERIAL", 0 if gather else 10**6)
    return str(request.param)
