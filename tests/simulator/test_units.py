"""Units of length and time in place of those of SI."""

from __future__ import annotations

import pytest

from simphys.simulator import SI, Units


@pytest.mark.parametrize(
    ("unit", "own"),
    [
        ("m", "nm"),
        ("m/s", "nm/ps"),
        ("1/s", "1/ps"),
        ("m^2/s", "nm^2/ps"),
        ("rad/s", "rad/ps"),
        ("(m/s)/m", "(nm/ps)/nm"),
        ("1", "1"),
        ("", ""),
        ("K", ""),
        ("kg m^2", ""),
        ("J", ""),
    ],
)
def test_units_of_length_and_time_alone_are_known(unit: str, own: str) -> None:
    assert Units("nm", "ps").convert(unit) == own
    assert SI.convert(unit) == unit
