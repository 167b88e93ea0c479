"""Measured inputs: columns of a file that drive a simulator, with unknown gain, offset and delay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.experiment.control import build_controls
from simphys.scenefile import ConfigError, ObservationsSection, RecordedSection

SCENE = Path(__file__).resolve().parents[2] / "scenes" / "pendulum" / "motor.toml"
TIMES, VALUES = np.array([0.0, 0.1, 0.25, 0.4]), np.array([[1.0, -2.0], [3.0, 0.0], [0.0, 1.0], [0.5, 4.0]])


def write(tmp_path: Path, rows: np.ndarray, header: str = "t,a,b") -> Path:
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",", header=header, comments="")
    return tmp_path / "log.csv"


def log(tmp_path: Path, shift: float = 0.0) -> Path:
    return write(tmp_path, np.column_stack([TIMES + shift, VALUES]))


def section(log: Path, **changes: Any) -> RecordedSection:
    given = {"kind": "recorded", "file": str(log), "time": "t", "columns": ["a", "b"]}
    return RecordedSection(**(given | changes))


def test_a_step_takes_gain_times_the_delayed_value_in_its_middle_plus_offset(tmp_path: Path) -> None:
    made = section(log(tmp_path), gain=[2.0, -1.0], offset=0.5, delay=[0.03, -0.05])
    found = build_controls(made, steps=10, dt=0.04).signal(10).data
    middle = 0.04 * (np.arange(10) + 0.5)
    for a, (gain, delay) in enumerate([(2.0, 0.03), (-1.0, -0.05)]):
        expected = gain * np.interp(middle - delay, TIMES, VALUES[:, a]) + 0.5
        np.testing.assert_allclose(found[:, a], expected, rtol=1e-12, atol=1e-12)


def test_a_step_takes_the_mean_of_held_samples(tmp_path: Path) -> None:
    """So that their impulse is exact wherever they change, also before the first sample and behind the last one."""
    made = section(log(tmp_path), gain=[2.0, -1.0], offset=0.5, delay=[0.03, -0.05], interpolation="held")
    found = build_controls(made, steps=12, dt=0.04).signal(12).data
    fine = 0.04 / 20000 * (np.arange(12 * 20000) + 0.5)
    for a, (gain, delay) in enumerate([(2.0, 0.03), (-1.0, -0.05)]):
        place = np.maximum(np.searchsorted(TIMES, fine - delay, side="right") - 1, 0)
        expected = gain * VALUES[place, a].reshape(12, -1).mean(axis=1) + 0.5
        np.testing.assert_allclose(found[:, a], expected, atol=1e-3)


@pytest.mark.parametrize("interpolation", ["linear", "held"])
def test_gain_offset_and_delay_have_right_derivatives(interpolation: str, tmp_path: Path) -> None:
    made = build_controls(section(log(tmp_path), interpolation=interpolation), steps=10, dt=0.04)

    def signal(gain: Any, offset: Any, delay: Any) -> Any:
        return made.replace(control_gain=gain, control_offset=offset, control_delay=delay).signal(10)

    numbers = [[1.3, -0.7], [0.2, 0.1], [0.013, -0.017]]
    gradcheck(signal, tuple([tensor(each, requires_grad=True) for each in numbers]))


def test_the_file_of_the_observations_is_shared_with_its_trials_and_its_window(tmp_path: Path) -> None:
    pairs = list(zip(TIMES, VALUES[:, 0], strict=True))
    rows = [[trial, time + 5, trial * value] for trial in (1.0, 2.0) for time, value in pairs]
    file = write(tmp_path, np.array(rows), "n,t,a")
    channel = {"column": "a", "field": "x", "node": 0}
    seen: dict[str, Any] = {
        "file": str(file),
        "time": "t",
        "trials": "n",
        "trial": 2,
        "window": [5.1, 9.0],
        "channels": [channel],
    }
    made = RecordedSection(kind="recorded", columns=["a"])
    found = build_controls(made, steps=6, dt=0.05, seen=ObservationsSection(**seen)).signal(6).data
    expected = np.interp(0.05 * (np.arange(6) + 0.5) + 0.1, TIMES, 2 * VALUES[:, 0])
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)
    ms = ObservationsSection(**(seen | {"time_unit": 2.0, "window": None, "begin": 10.2}))
    found = build_controls(made, steps=6, dt=0.1, seen=ms).signal(6).data
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"file": "gone.csv"}, r"control.file .*gone.csv: must be a file that can be read; found No such file"),
        ({"columns": ["a", "c"]}, r"must have this column; found column 'c'. It has t, a, b"),
        ({"begin": -0.3}, r"the input must be known over the motion, from 0 to 0.4; found from 0.3 to 0.7"),
        ({"begin": 0.3}, r"found from -0.3 to 0.1 after its start. Set control.begin"),
        ({"time": "a"}, r"line 4, column 'a': times of an input must increase; found 0.0 after 3.0"),
        ({"file": None}, r"control: needs a file; found neither control.file nor observations.file"),
        ({"trials": "a", "trial": 7}, r"no row of trial 7. Set control.trial to one of its numbers: 0, 0.5, 1, 3"),
    ],
)
def test_bad_inputs_are_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_controls(section(log(tmp_path), **change), steps=10, dt=0.04)


def test_a_gap_is_named_with_its_line(tmp_path: Path) -> None:
    file = log(tmp_path)
    file.write_text(file.read_text().replace("3.000000000000000000e+00", ""))
    with pytest.raises(InputError, match=r"log.csv, line 3, column 'a': an input must not be missing"):
        build_controls(section(file), steps=10, dt=0.04)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("control.columns=['voltage', 'angle']", "must name 1, which drive a step"),
        ("control.gain=[1.0, 2.0]", "must have 1 elements, one for each column"),
        ("control.trial=2", "needs both trials and trial, or none"),
    ],
)
def test_sections_that_do_not_fit_are_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        simphys.load_scene(SCENE, [override])


def test_a_driven_pendulum_tells_torque_by_voltage_and_delay() -> None:
    fit = simphys.identify(simphys.load_scene(SCENE, ["time.dt=0.01", "output.every=100"]))
    assert fit.verdict == "passed"
    true = {"torque_constant": 0.12, "delay": 0.035, "damping": 0.008, "angle": 0.2, "rate": 0.0}
    for row in fit.unknowns:
        assert abs(row.value - true[row.label]) < 3 * row.standard_error, row
    assert fit.unknowns[1].standard_error < 1e-4  # s
