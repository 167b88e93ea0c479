"""Animations: drawn frame by frame, and written as GIF and MP4 files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from simphys.autograd.errors import StorageError
from simphys.plot import style

RATE = 25
"""Frames a second; a GIF counts in hundredths of a second."""
SHORTEST, SECONDS, LONGEST = 1.5, 4.0, 8.0
"""Duration of an animation of few frames, of one, and of that of a long motion [s]."""
FRAMES = int(RATE * SECONDS)
SMALLER = (1.0, 0.8, 0.6)
"""Sizes of a picture that are tried to keep a GIF small, before frames are left out."""
LARGEST = 2_000_000  # bytes of a GIF
COLORS = 255
DPI = 100  # pixels an inch


def write_film(frames: Iterable[np.ndarray], path: Path) -> list[Path]:
    """Write pictures [height, width, 3] as a GIF of up to 2 MB at `path`, and as MP4 beside it if ffmpeg is installed.

    Return the paths.
    """
    drawn = list(frames)
    _write(path, encode_gif(drawn))
    return [path, *write_mp4(drawn, path.with_suffix(".mp4"))]


def choose_rows(time: np.ndarray, *, longest: float = SECONDS) -> np.ndarray:
    """Choose the frames of a motion at times [T] s, evenly: as long as the motion, from SECONDS to `longest`."""
    seconds = float(np.clip(time[-1] - time[0], SECONDS, max(longest, SECONDS)))
    return np.unique(np.linspace(0, len(time) - 1, int(RATE * seconds)).round().astype(int))


def _rate(count: int) -> float:
    """Frames a second of a film of `count` frames; few of them take a while, too."""
    return min(RATE, count / SHORTEST)


def film(
    figure: Figure, titled: Axes, moments: Iterable[tuple[float, Callable[[], Sequence[Artist]]]]
) -> Iterator[np.ndarray]:
    """Draw pictures [height, width, 3] of a figure at some times, which are the titles of the axes `titled`.

    The figure's own content is drawn once; the function of each moment adds the artists that change.
    """
    figure.set_dpi(DPI)
    canvas: Any = FigureCanvasAgg(figure)
    title = titled.set_title("t", animated=True)
    canvas.draw()
    figure.set_layout_engine("none")  # keep the layout as it is now
    still = canvas.copy_from_bbox(figure.bbox)
    for moment, draw in moments:
        canvas.restore_region(still)
        title.set_text(f"t = {style.moment(titled, moment)}")
        moving = draw()
        for artist in (*moving, title):
            (artist.axes or titled).draw_artist(artist)
        picture = np.asarray(canvas.buffer_rgba())[..., :3]
        yield picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2].copy()  # MP4 needs even sizes
        for artist in moving:
            artist.remove()


def encode_gif(frames: Sequence[np.ndarray]) -> bytes:
    """Encode all frames; for a small file they shrink, and then every second, third ... of them is taken."""
    for size in SMALLER:
        drawn = _with_palette([_resize(frame, size) for frame in frames])
        if len(content := _encode(drawn, 1)) <= LARGEST:
            return content
    for every in range(2, len(drawn) + 1):
        if len(content := _encode(drawn, every)) <= LARGEST:
            break
    return content


def _encode(drawn: Sequence[Image.Image], every: int) -> bytes:
    file, some = BytesIO(), drawn[::every]
    duration = 10 * round(100 * every / _rate(len(drawn)))  # ms
    some[0].save(file, "GIF", save_all=True, append_images=some[1:], duration=duration, loop=0, optimize=False)
    return file.getvalue()


def _resize(frame: np.ndarray, size: float) -> np.ndarray:
    if size == 1.0:
        return frame
    height, width, _ = frame.shape
    return np.asarray(Image.fromarray(frame).resize((round(size * width), round(size * height)), Image.Resampling.BOX))


def _with_palette(frames: Sequence[np.ndarray]) -> list[Image.Image]:
    """Reduce the frames to a common palette: the colours of the most frequent of 32^3 cells of the colour cube.

    White stays white, and a colour map has no visible steps.
    """
    from scipy.spatial import KDTree

    sample = np.concatenate([frame.reshape(-1, 3) for frame in frames[:: max(1, len(frames) // 6)]])
    cell = _cells(sample)
    counts = np.bincount(cell, minlength=1 << 15)
    common = np.argsort(-counts, kind="stable")[: min(COLORS, np.count_nonzero(counts))]
    sums = np.stack([np.bincount(cell, weights=sample[:, channel], minlength=1 << 15) for channel in range(3)], axis=1)
    palette = np.round(sums[common] / counts[common, None]).astype(np.uint8)
    cube = np.stack(np.unravel_index(np.arange(1 << 15), (32, 32, 32)), axis=1)
    nearest = KDTree(cube[common]).query(cube)[1].astype(np.uint8)
    made = [Image.fromarray(nearest[_cells(frame)]) for frame in frames]
    for image in made:
        image.putpalette(palette.tobytes())
    return made


def _cells(colors: np.ndarray) -> np.ndarray:
    return (colors >> 3).astype(np.int64) @ np.array([1 << 10, 1 << 5, 1])


def write_mp4(frames: Sequence[np.ndarray], path: Path) -> list[Path]:
    """Write pictures as MP4, if ffmpeg is installed; return its path, or nothing."""
    program = shutil.which("ffmpeg")
    if program is None:
        return []
    height, width, _ = frames[0].shape
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{_rate(len(frames)):g}"]
    made = subprocess.run(
        [program, "-y", *source, "-i", "-", "-pix_fmt", "yuv420p", str(path)],
        input=b"".join(frame.tobytes() for frame in frames),
        capture_output=True,
        check=False,
    )
    if made.returncode:  # ffmpeg without the codec: the GIF shows the same
        path.unlink(missing_ok=True)
        return []
    return [path]


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(
            f"picture {path} cannot be written: {reason}. Name another folder, or free space."
        ) from error
