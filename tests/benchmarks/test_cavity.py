"""Lid-driven cavity flow, against the tables of Ghia, Ghia and Shin 1982."""

from __future__ import annotations

import numpy as np

from benchmarks.truth.cavity import measure


def test_velocities_along_both_centre_lines_are_those_of_the_tables() -> None:
    """The Reynolds number is 100; the benchmark covers 1000 as well."""
    rows = measure(100, cells=32, dt=0.02, duration=16.0, precision="f64")
    u, v = rows[:, 2] - rows[:, 1], rows[:, 5] - rows[:, 4]
    assert abs(u).max() < 0.01 and abs(v).max() < 0.01  # the lid moves at 1 m/s
    assert np.sqrt(np.mean(np.append(u, v) ** 2)) < 0.004
