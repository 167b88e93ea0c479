"""A measurement is read as it stands in its file, or refused with the place, the reason and the remedy."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.experiment.channels import Channel
from simphys.experiment.observe import read
from simphys.experiment.observe_field import read_field_observations
from simphys.files.selection import require_near_start
from simphys.scenefile.body_names import BodyNames

from ..helpers.small_scenes import oscillator

SHARED = Path(os.environ.get("SIMPHYS_DATA") or Path(__file__).parents[3] / "shared" / "data")


@dataclass(frozen=True)
class Section:
    """A channel of a scene file."""

    column: int | str
    field: str = "position"
    node: int | list[int] = 0
    axis: int = 0
    unit: str = "px"
    sigma: float = 0.5
    relative: float = 0.0
    weights: int | str | None = None
    kind: str = "component"
    to: int | None = None
    point: list[float] | None = None
    gain: float = 1.0
    modulo: float | None = None
    correlation_time: float | None = None
    place: list[float] | None = None


X = Section(1)
SHAPES = {"position": (9, 3), "velocity": (9, 3)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "seen.txt"


def error(
    file: Path,
    *channels: Section,
    text: str,
    time: int | str = 0,
    missing: Literal["error", "skip"] = "error",
) -> str:
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read(file, time=time, channels=channels or (X,), missing=missing, shapes=SHAPES)
    assert str(file) in str(caught.value)
    return str(caught.value).replace(str(file), "FILE")


def test_times_values_weights_and_channels_are_read(file: Path) -> None:
    file.write_text("% t x y\n0 1 4\n0.1 2 5\n0.35 3 6\n")
    seen = read(file, time=0, channels=[Section(2, "velocity", 1, 2, "m/s"), Section(1, sigma=2.0)], shapes=SHAPES)
    assert seen.times.tolist() == [0.0, 0.1, 0.35]
    assert seen.values.tolist() == [[4.0, 1.0], [5.0, 2.0], [6.0, 3.0]]
    assert seen.weights.tolist() == [[4.0, 0.25]] * 3
    assert seen.channels == (
        Channel("velocity z of node 1", "velocity", (1, 2), "m/s"),
        Channel("position x of node 0", "position", (0, 0), "px"),
    )
    assert seen.file == file


@pytest.mark.parametrize(
    ("shape", "node", "label", "component"),
    [
        ((), [], "angle", ()),
        ((4,), 3, "angle of node 3", (3,)),
        ((4, 2), 3, "angle y of node 3", (3, 1)),
        ((4, 4), 3, "angle at 3, 1", (3, 1)),
        ((8, 9), [4, 7], "angle at 4, 7", (4, 7)),
        ((8, 9, 2), [4, 7], "angle at 4, 7, 1", (4, 7, 1)),
    ],
)
def test_a_channel_sees_a_component_of_a_field_of_any_shape(
    file: Path, shape: tuple[int, ...], node: int | list[int], label: str, component: tuple[int, ...]
) -> None:
    file.write_text("0 1\n1 2\n")
    (channel,) = read(file, time=0, channels=[Section(1, "angle", node, 1, "rad")], shapes={"angle": shape}).channels
    assert channel == Channel(label, "angle", component, "rad")


def test_an_entry_of_a_field_that_has_others_than_bodies_is_none_of_a_body(file: Path) -> None:
    """Such as a distance of a radial distribution function; velocities of atoms are those of atoms."""
    file.write_text("0 1 2\n1 2 3\n")
    shapes, atoms = {"position": (5, 3), "speed": (5,), "rdf": (8,)}, BodyNames("atom")
    channels = [Section(1, "rdf", 3, 0, "1"), Section(2, "speed", 3, 0, "m/s")]
    seen = read(file, time=0, channels=channels, shapes=shapes, names=atoms)
    assert [channel.label for channel in seen.channels] == ["rdf at 3", "speed of atom 3"]


def test_a_vector_of_one_component_has_no_letter(file: Path) -> None:
    """Such as the angle of a body in the plane, or a place along a line."""
    file.write_text("0 1\n1 2\n")
    seen = read(file, time=0, channels=[Section(1, "orientation", 3, 0, "rad")], shapes={"orientation": (4, 1)})
    assert seen.channels == (Channel("orientation of node 3", "orientation", (3, 0), "rad"),)


def test_a_column_of_weights_multiplies(file: Path) -> None:
    file.write_text("0 1 1\n1 2 0\n2 3 0.5\n")
    seen = read(file, time=0, channels=[Section(1, weights=2)], shapes=SHAPES)
    assert seen.weights[:, 0].tolist() == [4.0, 0.0, 2.0]


@pytest.mark.parametrize("cell", ["nan", "NaN", "", " ", "NA"])
def test_a_missing_sample_is_an_error_unless_it_may_be_skipped(file: Path, cell: str) -> None:
    text = f"t,x,y\n0,1,2\n1,{cell},3\n2,5,6\n"
    message = error(file, Section("y"), Section("x"), text=text, time="t")
    assert message == (
        "FILE, line 3, column 'x': samples must not be missing; found no value or NaN. "
        'Set observations.missing="skip" to give missing samples no weight.'
    )
    seen = read(file, time="t", channels=[Section("y"), Section("x")], missing="skip", shapes=SHAPES)
    assert seen.values.tolist() == [[2.0, 1.0], [3.0, 0.0], [6.0, 5.0]]
    assert seen.weights.tolist() == [[4.0, 4.0], [4.0, 0.0], [4.0, 4.0]]


def test_noise_may_grow_with_the_value(file: Path) -> None:
    file.write_text("0 10\n1 nan\n2 -40\n")
    seen = read(file, time=0, channels=[Section(1, sigma=3.0, relative=0.1)], missing="skip", shapes=SHAPES)
    np.testing.assert_allclose(seen.weights[:, 0], [1 / (9 + 1), 0.0, 1 / (9 + 16)])


@pytest.mark.parametrize("sigma", [None, "unknown"])
def test_noise_that_grows_needs_a_number_to_grow_from(tmp_path: Path, sigma: str | None) -> None:
    given = {"column": 1, "field": "position", "node": 0, "sigma": sigma, "relative": 0.1}
    with pytest.raises(InputError, match=r"channels\.0\.relative: needs sigma, the noise of a sample of value 0"):
        oscillator(tmp_path / "seen.txt", observations={"channels": [given]})


def test_a_missing_weight_is_a_missing_sample(file: Path) -> None:
    message = error(file, Section(1, weights=2), text="0,1,1\n1,2,\n")
    assert message.startswith("FILE, line 2, column 2: samples must not be missing")
    seen = read(file, time=0, channels=[Section(1, weights=2)], missing="skip", shapes=SHAPES)
    assert seen.weights[:, 0].tolist() == [4.0, 0.0]


def test_a_missing_time_is_an_error_in_any_case(file: Path) -> None:
    message = error(file, text="0,1\n,2\n", missing="skip")
    assert message.startswith("FILE, line 2, column 0: every sample must have a time; found none. ")


def test_a_channel_without_any_weight_is_an_error(file: Path) -> None:
    message = error(file, Section(1, weights=2), text="0,,1\n1,2,0\n", missing="skip")
    assert message.startswith("FILE, column 1: needs a sample with a weight; found 1 of 2 missing, the others of wei")


@pytest.mark.parametrize("second", [1.5, 2.0])
def test_times_must_increase(file: Path, second: float) -> None:
    assert error(file, text=f"0 1\n2 1\n{second} 1\n") == (
        f"FILE, line 3, column 0: times must increase; found {second} after 2.0. "
        "Sort the samples by time and keep one of each time, name another column in observations.time, or the column "
        "that numbers trials in observations.trials."
    )


def test_a_time_before_the_start_is_an_error(file: Path) -> None:
    message = error(file, text="-0.1 1\n0 1\n")
    assert message.startswith("FILE, line 1, column 0: times must not be negative; found -0.1. ")


def test_a_negative_weight_is_an_error(file: Path) -> None:
    message = error(file, Section(1, weights=2), text="0 1 1\n1 1 -2\n")
    assert message.startswith("FILE, line 2, column 2: weights must not be negative; found -2. ")


@pytest.mark.skipif(not SHARED.exists(), reason=f"no recordings at {SHARED}; set SIMPHYS_DATA to their folder")
@pytest.mark.parametrize(("name", "columns", "rows"), [("linear", [2], 870), ("double_linear", [2, 3], 495)])
def test_real_recordings_are_read(name: str, columns: list[int], rows: int) -> None:
    file = SHARED / "air_track_and_pendulum" / f"real_{name}_h_1.txt"
    seen = read(file, time=1, channels=[Section(c, node=n) for n, c in enumerate(columns)], shapes=SHAPES)
    assert seen.values.shape == (rows, len(columns))
    assert seen.times[0] == 0.033
    assert np.ptp(seen.values) > 100.0


def test_times_of_a_clock_are_refused_and_the_window_that_is_told_takes_them(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    right = oscillator(seen)
    stamped = np.loadtxt(seen) + np.array([1764100000.0, 0.0])
    np.savetxt(seen, stamped)
    first, last = stamped[0, 0].item(), stamped[-1, 0].item()
    with pytest.raises(InputError) as caught:
        oscillator(seen, time={"duration": None})
    message = str(caught.value)
    assert f"{seen}, column 0: times must count from the start of the motion, at 0; found " in message
    assert f"the first at {first!r}, the last at {last!r}: 1.8e+11 time steps before a motion of 3.9" in message
    assert f"Set observations.window = [{first!r}, {last!r}], " in message
    scene = oscillator(seen, time={"duration": None}, observations={"window": [first, last]})
    assert right.observations is not None and scene.observations is not None
    times = right.observations.times - right.observations.times[0]
    np.testing.assert_allclose(scene.observations.times, times, atol=5e-7)  # s; as Unix times resolve them


def test_a_recording_in_milliseconds_counts_from_its_begin_on_by_every_third_sample(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    right = oscillator(seen).observations
    np.savetxt(seen, np.loadtxt(seen) * np.array([1e3, 1.0]))
    assert right is not None
    begin = (right.times[4] + right.times[5]).item() / 2
    part = {"time_unit": 0.001, "begin": begin, "every": 3, "window": [0.0, right.times[-2].item() + 1e-9]}
    found = oscillator(seen, observations=part).observations
    assert found is not None
    np.testing.assert_allclose(found.times, right.times[5:-1:3] - begin, rtol=1e-9)
    np.testing.assert_allclose(found.values, right.values[5:-1:3])


def test_a_begin_behind_the_window_is_told(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    oscillator(seen)
    message = r"samples in the window from 0 to 0.1 since the start of the motion at 0.2; found times from 0"
    with pytest.raises(InputError, match=message):
        oscillator(seen, observations={"window": [0.0, 0.1], "begin": 0.2})


@pytest.mark.parametrize(("key", "value"), [("every", 0), ("time_unit", 0.0), ("time_unit", -1.0)])
def test_a_part_that_is_none_is_refused(tmp_path: Path, key: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"observations\.{key}: must be"):
        oscillator(tmp_path / "seen.txt", observations={key: value})


def test_a_field_with_times_of_a_clock_is_refused(tmp_path: Path) -> None:
    times = np.array([0.0, 1.0]) + 1764100000.0
    np.savez(tmp_path / "seen.npz", time=times, values=np.zeros((2, 3)))
    options: Any = {"field": "u", "shapes": {"u": (3,)}, "members": None, "sigma": 1.0}
    with pytest.raises(InputError, match=r"time: times must count .*\.window = \[1764100000\.0, 1764100001\.0\], from"):
        read_field_observations(tmp_path / "seen.npz", dt=1e-3, **options)


@pytest.mark.parametrize("times", [[500.0], [9999.0, 9999.01], [2000.0, 120000.0]])
def test_late_samples_that_a_motion_reaches_are_read(times: list[float]) -> None:
    require_near_start(np.array(times), 1e-3, "seen.txt")
