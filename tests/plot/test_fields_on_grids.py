"""Pictures of fields on grids have the right positions, a common colour scale, and labels with units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from simphys import plot
from simphys.plot.fields.grids import MOST, Plane, make_planes
from simphys.plot.fields.images import make_scale
from simphys.record import Recording
from simphys.simulator.grids import Grid

from .grid_runs import grid_run, ripple

UNITS = {"height": "m", "velocity": "m/s", "speed": "m/s"}


def run_of(folder: Path, cells: tuple[int, ...], **fields: np.ndarray) -> Recording:
    return grid_run(folder / "run", fields or {"height": ripple(cells, 11)}, cells=cells, units=UNITS)


def images(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.images]


def numbers(axes: Axes) -> np.ndarray:
    """Values of an image, [across, up]."""
    return np.ma.filled(np.ma.asarray(axes.images[0].get_array()), np.nan).T


def names(figure: Figure) -> list[str]:
    return [axes.get_ylabel() for axes in figure.axes] + [axes.get_xlabel() for axes in figure.axes]


def test_six_snapshots_share_a_scale_that_is_centred_at_zero(tmp_path: Path) -> None:
    figure = plot.snapshots(run_of(tmp_path, (24, 12)))
    shown, field = images(figure), ripple((24, 12), 11)
    assert [axes.get_title(loc="left") for axes in shown] == [
        f"t = {time} s" for time in ("0", 0.2, 0.4, 0.6, 0.8, "1")
    ]
    np.testing.assert_allclose(numbers(shown[2]), field[4], rtol=1e-6)
    ((low, high),) = {axes.images[0].get_clim() for axes in shown}
    assert low == -high and high == pytest.approx(np.abs(field[::2]).max())
    np.testing.assert_allclose(shown[0].images[0].get_extent(), [0, 1, 0, 0.5])
    assert "height [m]" in names(figure) and shown[3].get_xlabel() == "x [m]" and shown[3].get_ylabel() == "y [m]"


def test_cells_that_are_points_lie_in_the_middle_of_their_colour(tmp_path: Path) -> None:
    run = grid_run(tmp_path, {"height": ripple((10, 5), 2)}, cells=(10, 5), units=UNITS, offset=0.0)
    np.testing.assert_allclose(images(plot.snapshots(run))[0].images[0].get_extent(), [-0.05, 0.95, -0.05, 0.45])


def test_on_a_line_there_are_curves_and_colours_along_time(tmp_path: Path) -> None:
    above, beneath, key = plot.snapshots(run_of(tmp_path, (30,))).axes
    np.testing.assert_allclose(np.asarray(above.lines[1].get_ydata()), ripple((30,), 11)[2], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(above.lines[1].get_xdata()), (np.arange(30) + 0.5) / 30)
    assert [line.get_label() for line in above.lines][:2] == ["0 s", "0.2 s"]
    assert np.asarray(beneath.collections[0].get_array()).shape == (11, 30)
    assert (beneath.get_xlabel(), beneath.get_ylabel(), key.get_ylabel()) == ("x [m]", "time [s]", "height [m]")


def test_in_space_the_middle_planes_are_shown_and_named(tmp_path: Path) -> None:
    cells = (8, 6, 4)
    figure = plot.snapshots(run_of(tmp_path, cells))
    shown, field = images(figure), ripple(cells, 11)
    assert len(shown) == 18
    first = {axes.get_ylabel(): axes for axes in shown if axes.get_ylabel()}
    expected = {
        "z = 0.312 m\ny [m]": field[0][:, :, 2],
        "y = 0.438 m\nz [m]": field[0][:, 3],
        "x = 0.562 m\nz [m]": field[0][4],
    }
    assert first.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(numbers(first[name]), values, rtol=1e-6)


@pytest.mark.parametrize("staggered", [False, True])
def test_vectors_in_a_plane_are_drawn_by_vorticity(staggered: bool, tmp_path: Path) -> None:
    cells, spacing = (16, 8), 1 / 16
    x, y = (spacing * (np.arange(n + staggered) + 0.5) for n in cells)
    of_faces = spacing / 2 * staggered
    turn = np.stack(
        [np.broadcast_to(-3 * y, (len(x), len(y))), np.broadcast_to(2 * (x - of_faces)[:, None], (len(x), len(y)))]
    )
    figure = plot.snapshots(run_of(tmp_path, cells, velocity=np.stack([turn] * 3)))
    np.testing.assert_allclose(numbers(images(figure)[0]), 5.0, rtol=1e-6)
    assert "vorticity [1/s]" in names(figure)


def test_vectors_in_space_are_drawn_by_length(tmp_path: Path) -> None:
    velocity = np.broadcast_to(np.array([2.0, 1.0, -2.0]).reshape(3, 1, 1, 1), (2, 3, 4, 4, 4))
    figure = plot.snapshots(run_of(tmp_path, (4, 4, 4), velocity=velocity))
    np.testing.assert_allclose(numbers(images(figure)[0]), 3.0)
    assert "speed [m/s]" in names(figure)


def test_the_first_of_several_experiments_is_drawn(tmp_path: Path) -> None:
    field = ripple((6, 4), 3)
    several = np.stack([field, -field], axis=1)
    run = grid_run(tmp_path, {"height": several}, cells=(6, 4), units=UNITS, members=2)
    figure = plot.snapshots(run)
    np.testing.assert_allclose(numbers(images(figure)[0]), field[0], rtol=1e-6)
    assert "height, experiment 0 [m]" in names(figure)


def test_more_cells_than_pixels_are_averaged() -> None:
    cells = (2 * MOST + 1, 5)
    plane = Plane(Grid(cells=cells, spacing=0.1, offset=0.5, fields={}), (0, 1))
    rising = np.broadcast_to(np.arange(cells[0])[:, None], cells)
    picture = plane.cut(rising)
    np.testing.assert_array_equal(picture[:3, 0], [1, 4, 7])  # blocks of three
    np.testing.assert_allclose(plane.places(0)[:2], [0.15, 0.45])
    np.testing.assert_allclose(plane.limits(0), (0, 0.3 * len(picture)))
    assert picture.shape == (cells[0] // 3, 5)


def test_memory_holds_the_pictures_and_one_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path, (24, 12))
    monkeypatch.setattr(Recording, "thinned", None)
    whole = Recording.__getitem__

    def small(self: Recording, path: str) -> np.ndarray:
        assert not path.endswith("height/value")
        return whole(self, path)

    monkeypatch.setattr(Recording, "__getitem__", small)
    plot.snapshots(run)


def test_a_scale_ignores_outliers() -> None:
    signs, few = np.clip(np.linspace(-1.2, 1.2, 5000), -1, 1), np.zeros(5000)
    few[-1] = 9.0
    assert make_scale([signs]).limits == (-1, 1) and make_scale([signs]).extend == "neither"
    cut = make_scale([signs, signs + few])
    np.testing.assert_allclose(cut.limits, (-1, 1), rtol=0.01)
    assert (cut.color_map, cut.extend) == ("RdBu_r", "max")
    one_sign = make_scale([1 + signs / 2])
    assert one_sign.limits == (0.5, 1.5) and one_sign.color_map == "viridis"
    assert make_scale([1 + signs / 2], signed=True).limits == (-1.5, 1.5)
    np.testing.assert_allclose(make_scale([np.full(9, 2.0)]).limits, (1.98, 2.02))
    assert make_scale([np.zeros(9)], signed=True).limits == (-1, 1)
    assert make_scale([np.full(9, np.nan)]).limits == (-0.01, 0.01)


def test_a_motion_that_blew_up_is_drawn_up_to_there(tmp_path: Path) -> None:
    field = ripple((8, 8), 11)
    field[-1, 0, 0] = np.inf
    run = grid_run(tmp_path, {"height": field}, cells=(8, 8), units=UNITS, status="blown up")
    figure = plot.snapshots(run)
    assert len(images(figure)) == 5 and "blown up after 0.8 s" in str(figure.get_suptitle())
    with pytest.raises(plot.NotRecorded, match="needs a finite frame"):
        plot.snapshots(grid_run(tmp_path / "all", {"height": field * np.nan}, cells=(8, 8), units=UNITS))


def test_a_field_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no ffmpeg
    for cells in ((40,), (20, 16), (8, 8, 8)):
        folder = tmp_path / str(len(cells))
        (path,) = plot.field_animation(run_of(folder, cells), folder / "film.gif")
        with Image.open(path) as film:
            made = []
            for frame in range(getattr(film, "n_frames", 1)):
                film.seek(frame)
                made.append(np.asarray(film.convert("RGB")).astype(int))
        assert len(made) == 11
        assert (np.abs(made[0] - made[-1]).max(axis=2) > 60).sum() > 20
        assert (made[3][:, :10] == made[0][:, :10]).all()  # labels do not move


def test_a_missing_field_is_an_error(tmp_path: Path) -> None:
    run = run_of(tmp_path, (8, 8))
    with pytest.raises(plot.NotRecorded, match="draws fields on the grid: height; found received"):
        plot.snapshots(
            grid_run(
                tmp_path / "a", {"received": np.zeros((2, 3)), "height": ripple((8, 8), 2)}, cells=(8, 8), units=UNITS
            ),
            field="received",
        )
    for draw in (plot.medium, plot.gather, plot.adjoint_fields):
        with pytest.raises(plot.NotRecorded):
            draw(run)


def test_all_figures_draws_them_for_each_field_instead_of_curves(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"height": ripple((8, 8), 3), "received": np.ones((3, 2)), "force": np.zeros((3, 2))}
    run = grid_run(tmp_path / "run", fields, cells=(8, 8), units=UNITS)
    (tmp_path / "medium_speed.png").write_bytes(b"of an earlier run")
    made = [path.name for path in plot.all_figures(run, tmp_path)]
    assert [name for name in made if not name.endswith(".mp4")] == [
        "fields.png",
        "snapshots_height.png",
        "animation_height.gif",
    ]
    assert not (tmp_path / "medium_speed.png").exists()
    assert [axes.get_ylabel() for axes in plot.fields(run).axes] == ["received"]


def test_a_gradient_that_is_zero_has_no_picture_beside_those_of_fields(tmp_path: Path) -> None:
    fields = {"height": ripple((8, 8), 3), "force": np.zeros((3, 2))}
    rows = {"time": np.linspace(0, 1, 3), "height": np.ones((3, 8, 8)), "force": np.zeros((3, 2))}
    run = grid_run(tmp_path / "run", fields, cells=(8, 8), units=UNITS, tables={"adjoint": rows})
    with pytest.raises(plot.NotRecorded):
        plot.adjoint(run)
    assert "adjoint.png" not in [path.name for path in plot.all_figures(run, tmp_path)]


def test_planes_of_a_line_and_of_a_plane_are_whole() -> None:
    for cells in ((5,), (5, 4)):
        (plane,) = make_planes(Grid(cells=cells, spacing=1.0, offset=0.0, fields={}))
        values = np.arange(np.prod(cells), dtype=float).reshape(cells)
        np.testing.assert_array_equal(plane.cut(values), values)
