"""Films of every simulator: in a notebook, in a file, and by the command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from simphys import plot
from simphys.app.workflow import simulate
from simphys.autograd.errors import InputError
from simphys.experiment.scene import load_scene
from simphys.plot import style
from simphys.plot.film import choose_rows, encode_gif
from simphys.plot.motion import animation
from simphys.record import Recording, list_parts
from simphys.report.notebook import Film
from simphys.rollout import rollout

from ..helpers.oscillator import simphys

SCENES = Path(__file__).resolve().parents[2] / "scenes"
MOTIONS = {
    "mass_spring/air_track": ("output.every=8",),
    "mass_spring/throw": (),
    "charges/find_charges": (),
    "billiards/carom": (),
    "rigid/two_balls": ("output.every=8",),
    "heat/conductivity": (),
}


@pytest.fixture(autouse=True)
def few_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw three frames of each film: what moves shows in them."""

    def rows(time: np.ndarray, *, longest: float = 0.0) -> np.ndarray:
        return np.linspace(0, len(time) - 1, 3).round().astype(int)

    monkeypatch.setattr(animation, "choose_rows", rows)
    monkeypatch.setattr(sys.modules["simphys.plot.fields.field_animation"], "FRAMES", 3)


@pytest.mark.parametrize("name", MOTIONS)
def test_a_motion_of_any_simulator_moves_in_its_film(name: str) -> None:
    first, middle, last = plot.draw_film(simulate(load_scene(SCENES / f"{name}.toml", MOTIONS[name])))
    assert first.shape == last.shape and first.shape[2] == 3
    assert (first == 255).all(axis=2).mean() > 0.2 or name.startswith(("heat", "billiards"))
    for one, other in ((first, middle), (middle, last)):
        assert 20 < (np.abs(one.astype(int) - other).max(axis=2) > 60).sum() < 0.6 * first[..., 0].size


def test_a_trajectory_and_a_run_in_memory_have_films_that_notebooks_play(tmp_path: Path) -> None:
    scene = load_scene(SCENES / "pendulum" / "swing.toml")
    trajectory = scene.rollout()
    film = trajectory.animate()
    assert film._repr_html_().startswith('<img alt="film of A pendulum before a camera" src="data:image/gif;base64,')
    with Image.open(film.save(tmp_path / "film.gif")) as image:
        assert image.n_frames == len(film.frames) == 3  # type: ignore[attr-defined]
    axes = trajectory.plot("angle").axes[0]
    assert axes.get_xlabel() == "time [s]" and axes.get_ylabel() == "angle [rad]"
    plain = rollout(scene.model, scene.params, scene.state, steps=3)
    with pytest.raises(InputError, match=r"Scene\.rollout"):
        plain.animate()
    with pytest.raises(InputError, match="is a GIF or an MP4"):
        film.save(tmp_path / "film.avi")


def test_each_of_several_experiments_has_a_film_that_names_it(tmp_path: Path) -> None:
    assert simphys("run", SCENES / "pendulum" / "four_angles.toml", f"output.folder={tmp_path}/run").exit_code == 0
    recording = Recording(tmp_path / "run")
    parts = list_parts(recording)
    with pytest.raises(InputError, match=f"needs one motion; found experiments {', '.join(parts)}"):
        recording.animate()
    for name, part in parts.items():
        assert style.new_figure(part, 1.0).get_suptitle().endswith(f": {name}")
    paths = simphys("film", tmp_path / "run").stdout.split()
    assert [Path(path).name for path in paths] == [f"film_{name.replace(' ', '_')}.gif" for name in parts]
    assert len({Path(path).read_bytes() for path in paths}) == len(parts)


def test_an_mp4_needs_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    film = load_scene(SCENES / "pendulum" / "swing.toml").rollout().animate()
    with pytest.raises(InputError, match="ffmpeg"):
        film.save(tmp_path / "film.mp4")


def test_ffmpeg_reads_each_picture_of_an_mp4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("imageio_ffmpeg", reason="needs an ffmpeg (pip install imageio-ffmpeg)")
    (tmp_path / "ffmpeg").symlink_to(package.get_ffmpeg_exe())
    monkeypatch.setenv("PATH", str(tmp_path))
    film = Film([np.full((32, 48, 3), 5 * place, np.uint8) for place in range(50)], "film")
    path = film.save(tmp_path / "film.mp4")
    shown = subprocess.run(["ffmpeg", "-i", path, "-f", "null", "-"], capture_output=True, text=True, check=True)
    assert all(word in shown.stderr for word in ("48x32", "25 fps", "h264"))
    assert re.findall(r"frame= *(\d+)", shown.stderr)[-1] == "50"


def test_films_have_25_frames_a_second_and_last_longer_for_long_motions() -> None:
    assert len(choose_rows(np.linspace(0, 1, 1000))) == 100
    assert len(choose_rows(np.linspace(0, 60, 1000), longest=8.0)) == 200
    assert len(choose_rows(np.linspace(0, 1, 30))) == 30
    made = [
        np.where(np.arange(50)[None, :, None] == place, 0, np.full((8, 1, 3), 255, np.uint8)) for place in range(50)
    ]
    with Image.open(BytesIO(encode_gif(made))) as image:
        assert image.info["duration"] == 40
    with Image.open(BytesIO(encode_gif(made[:15]))) as image:
        assert image.info["duration"] == 100  # 1.5 s in all
