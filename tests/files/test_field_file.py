"""Fields from files: arrays, text, pictures as one looks at them; targets of losses among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image

from simphys.autograd.errors import InputError
from simphys.files.field_file import read_field
from simphys.scenefile import ConfigError

from ..helpers.row_scene import register, row

FIELD = np.arange(6.0).reshape(2, 3)


def test_an_array_and_text_are_the_numbers_themselves(tmp_path: Path) -> None:
    np.save(tmp_path / "field.npy", FIELD)
    np.savetxt(tmp_path / "field.txt", FIELD, header="a comment")
    for name in ("field.npy", "field.txt"):
        np.testing.assert_array_equal(read_field(tmp_path / name, [(2, 3)]), FIELD)
    np.testing.assert_array_equal(read_field(tmp_path / "field.txt", [(3,), (3, 1, 2)]), FIELD.reshape(3, 1, 2))


def test_a_picture_shows_x_to_the_right_and_y_upwards(tmp_path: Path) -> None:
    picture = np.zeros((3, 2))  # three rows from above
    picture[0, 1] = 1.0  # right, above
    image.imsave(tmp_path / "target.png", picture, cmap="gray", vmin=0, vmax=1)
    found = read_field(tmp_path / "target.png", [(2, 3)])
    assert found[1, 2] == pytest.approx(1) and np.count_nonzero(found > 1e-6) == 1
    scaled = read_field(tmp_path / "target.png", [(2, 3)], greys=(-1.0, 3.0))
    assert (scaled[1, 2], scaled[0, 0]) == (pytest.approx(3), pytest.approx(-1))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.npy", None, "must be a file that can be read; found No such file"),
        ("field.npy", np.zeros((3, 2)), "must have the shape [2, 3]; found [3, 2]"),
        ("field.npy", np.full((2, 3), np.nan), "must hold finite numbers; found nan at [0, 0]"),
        ("field.npy", np.full((2, 3), "a"), "must hold the numbers of a field; found an array of <U1"),
        ("field.txt", "1 2 3\n4 5\n", "must hold the numbers of a field"),
        ("field.txt", "1 2 3\n", "must have the shape [2, 3]; found [3]"),
        ("field.png", "no picture", "must hold the numbers of a field"),
    ],
)
def test_mistakes_are_told(name: str, content: Any, message: str, tmp_path: Path) -> None:
    if isinstance(content, str):
        (tmp_path / name).write_text(content)
    elif content is not None:
        np.save(tmp_path / name, content)
    with pytest.raises(InputError) as error:
        read_field(tmp_path / name, [(2, 3)])
    assert str(error.value).startswith(f"{tmp_path / name}: {message}")


def test_a_target_may_be_a_file_of_one_experiment_or_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)
    target = np.array([[0.1, -0.2, 0.3], [0.0, 0.1, 0.2]])
    np.save(tmp_path / "each.npy", target)
    np.save(tmp_path / "one.npy", target[1])
    np.save(tmp_path / "many.npy", np.zeros(4))
    for kind, steps in (("final_state", [-1]), ("running_sum", slice(1, None))):
        for file, wanted in (("each.npy", target), ("one.npy", target[[1, 1]])):
            term = {"kind": kind, "field": "angle", "target": str(tmp_path / file)}
            scene = row(tmp_path, loss={"terms": [term]})
            motion = scene.rollout()
            away = np.mean((motion.angle.data[:, steps] - wanted[:, None]) ** 2, axis=(0, 2))
            expected = away.sum() * (1.0 if kind == "final_state" else scene.dt)
            assert scene.loss(motion).item() == pytest.approx(expected, rel=1e-12)
    term = {"kind": "final_state", "field": "angle", "target": str(tmp_path / "many.npy")}
    with pytest.raises(InputError, match=r"must have the shape \[2, 3\] or \[3\]; found \[4\]"):
        row(tmp_path, loss={"terms": [term]})
    with pytest.raises(ConfigError, match="target_range: belongs to a target that is a picture"):
        row(tmp_path, loss={"terms": [{**term, "target": 0.1, "target_range": [0.0, 2.0]}]})


def test_a_damaged_header_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "field.npy"
    np.save(file, np.ones((3, 2)))
    whole = file.read_bytes()
    place = whole.index(b"}") + 2
    file.write_bytes(whole[:place] + b"(" + whole[place + 1 :])
    with pytest.raises(InputError, match=r"field\.npy: must hold the numbers of a field"):
        read_field(file, [(3, 2)])


def test_a_header_that_promises_more_than_the_file_holds_allocates_nothing(tmp_path: Path) -> None:
    with (tmp_path / "field.npy").open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (3, 10**12)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(1000))
    with pytest.raises(InputError, match=r"field\.npy: must .* greater than file size"):
        read_field(tmp_path / "field.npy", [(3, 2)])


def test_a_picture_of_too_many_pixels_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import image

    file = tmp_path / "field.png"
    image.imsave(file, np.zeros((4, 3)))
    monkeypatch.setattr("simphys.files.field_file.MOST_PIXELS", 11)
    with pytest.raises(InputError, match="found a picture of 3 x 4 pixels, more than 11 in all"):
        read_field(file, [(3, 4)])
