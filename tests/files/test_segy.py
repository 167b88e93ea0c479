"""Surveys in SEG-Y files: written and read again, headers as other programs write them, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.files.segy import Survey, read_survey, write_survey

SOURCES = np.array([[10.0, 2.5, 0.25], [40.0, -2.5, 0.0]])
RECEIVERS = np.array([[0.0, 0.0, 0.0], [5.5, 0.0, 1.25], [5.5, 1.0, 0.0]])


@pytest.fixture
def segyio() -> Any:
    return pytest.importorskip("segyio", reason="needs the extra 'segy' (pip install 'simphys[segy]')")


def make_survey() -> Survey:
    """Make two shots; the second has no horizontal components, and did not reach the last receiver."""
    traces = np.random.default_rng(0).standard_normal((2, 6, 3, 3)).astype(np.float32).astype(float)
    traces[1, :, :2], traces[1, :, :, 2] = np.nan, np.nan
    return Survey(-0.004 + 0.0005 * np.arange(6), SOURCES, RECEIVERS, traces)


def test_a_survey_is_read_as_it_was_written(segyio: Any, tmp_path: Path) -> None:
    survey = make_survey()
    write_survey(tmp_path / "shots.sgy", survey)
    found = read_survey(tmp_path / "shots.sgy")
    for name, expected in survey._asdict().items():
        np.testing.assert_allclose(getattr(found, name), expected, atol=1e-12, err_msg=name)
    assert found.arrange().shape == (2, 6, 6)
    np.testing.assert_array_equal(found.arrange()[0, :, 3:], survey.traces[0, :, 2])


def test_headers_may_leave_scalars_and_components_out(segyio: Any, tmp_path: Path) -> None:
    """Traces of vertical geophones in whole metres, the source at a depth beneath a hill."""
    spec = segyio.spec()
    spec.format, spec.tracecount, spec.samples = 1, 2, np.arange(4) * 2.0
    field = segyio.TraceField
    with segyio.create(str(tmp_path / "field.sgy"), spec) as file:
        file.bin.update({segyio.BinField.Interval: 2000})
        for row in range(2):
            file.trace[row] = np.arange(4, dtype=np.float32) + row
            file.header[row] = {
                field.FieldRecord: 7, field.TraceIdentificationCode: 1, field.SourceX: 3, field.SourceDepth: 20,
                field.SourceSurfaceElevation: 5, field.GroupX: 100 - 50 * row, field.ElevationScalar: -10,
                field.TRACE_SAMPLE_INTERVAL: 2000,
            }  # fmt: skip
    found = read_survey(tmp_path / "field.sgy")
    assert found.source_position.tolist() == [[3.0, 0.0, 1.5]]
    assert found.receiver_position[:, 0].tolist() == [50.0, 100.0]
    np.testing.assert_allclose(found.time, 0.002 * np.arange(4))
    np.testing.assert_array_equal(found.arrange("z"), np.arange(4)[:, None] + [1, 0])


def test_a_file_that_is_no_survey_is_refused(segyio: Any, tmp_path: Path) -> None:
    (tmp_path / "none.sgy").write_bytes(b"no survey")
    with pytest.raises(InputError, match=r"none\.sgy.*must be a SEG-Y file"):
        read_survey(tmp_path / "none.sgy")
    survey = make_survey()
    with pytest.raises(InputError, match="whole microseconds apart"):
        write_survey(tmp_path / "uneven.sgy", survey._replace(time=survey.time**2))


def test_without_segyio_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "segyio", None)
    with pytest.raises(InputError, match=r"needs the package segyio.*simphys\[segy\]"):
        read_survey("shots.sgy")
