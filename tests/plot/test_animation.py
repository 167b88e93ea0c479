"""Animation of a motion."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from simphys import plot
from simphys.autograd.errors import StorageError

from .particle_runs import particle_run

MODULE = sys.modules["simphys.plot.film"]


@pytest.fixture(autouse=True)
def no_ffmpeg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Folder that is the only one searched for programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def pictures(path: Path) -> list[np.ndarray]:
    with Image.open(path) as image:
        made = []
        for frame in range(getattr(image, "n_frames", 1)):
            image.seek(frame)
            made.append(np.asarray(image.convert("RGB")))
    return made


def coloured(picture: np.ndarray) -> np.ndarray:
    """Columns with the colour of the particles."""
    some = picture.astype(int)
    return np.flatnonzero((np.ptp(some, axis=2) > 60).sum(axis=0) > 20)


def test_particles_move_across_the_picture(tmp_path: Path) -> None:
    (path,) = plot.animation(particle_run(tmp_path / "run", group=np.repeat([0, 1], 200)), tmp_path / "motion.gif")
    made = pictures(path)
    assert path == tmp_path / "motion.gif" and len(made) == 9
    assert coloured(made[-1]).min() > coloured(made[0]).min() + 100
    assert (made[0][0, 0] == 255).all()


def test_the_animation_of_a_long_motion_has_a_hundred_frames_in_four_seconds(tmp_path: Path) -> None:
    (path,) = plot.animation(particle_run(tmp_path / "run", frames=150), tmp_path / "motion.gif")
    assert len(pictures(path)) == 100
    with Image.open(path) as image:
        assert image.info["duration"] == 40
        assert image.info["loop"] == 0


def test_a_file_that_would_be_too_large_has_fewer_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = particle_run(tmp_path / "run")
    (path,) = plot.animation(run, tmp_path / "motion.gif")
    monkeypatch.setattr(MODULE, "LARGEST", int(0.6 * path.stat().st_size))
    (path,) = plot.animation(run, tmp_path / "motion.gif")
    assert 2 <= len(pictures(path)) < 9 and path.stat().st_size <= MODULE.LARGEST


def test_ffmpeg_gets_all_frames_if_it_is_installed(tmp_path: Path, no_ffmpeg: Path) -> None:
    program = no_ffmpeg / "ffmpeg"
    program.write_text('#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\n/bin/cat > "$1"\n')
    program.chmod(0o755)
    gif, film = plot.animation(particle_run(tmp_path / "run"), tmp_path / "motion.gif")
    with Image.open(gif) as image:
        width, height = image.size
    assert film == tmp_path / "motion.mp4" and width % 2 == height % 2 == 0
    assert film.stat().st_size == 9 * width * height * 3


def test_an_ffmpeg_that_fails_leaves_the_gif(tmp_path: Path, no_ffmpeg: Path) -> None:
    program = no_ffmpeg / "ffmpeg"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    assert plot.animation(particle_run(tmp_path / "run"), tmp_path / "motion.gif") == [tmp_path / "motion.gif"]
    assert not (tmp_path / "motion.mp4").exists()


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file or directory"):
        plot.animation(particle_run(tmp_path / "run"), tmp_path / "none" / "motion.gif")
