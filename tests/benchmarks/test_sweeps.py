"""The benchmark of sweeps, at a small size."""

from __future__ import annotations

import pytest

from benchmarks import sweeps


@pytest.mark.parametrize(
    "part, told",
    [("fits", "1 fits of "), ("batch", "1 robots: "), ("members", "1 members that do nothing: ")],
)
def test_it_prints_the_cost_of_each_part(part: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    sweeps.main([part, "--members", "1", "--workers", "1"])
    assert told in capsys.readouterr().out
