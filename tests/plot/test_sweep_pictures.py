"""Pictures of sweeps: responses, maps over two keys, members as lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PathCollection, QuadMesh

from simphys.plot.sweep import draw_sweep, sweep_figures

X, Y = (places.ravel() for places in np.meshgrid([1.0, 2.0, 4.0], [0.1, 0.2]))


@pytest.fixture
def columns() -> dict[str, np.ndarray]:
    """Six members, a whole grid of two keys; one result has failed, another is the same but for rounding."""
    loss = X**2 + Y
    loss[4] = np.nan
    return {"x": X, "y": Y, "loss": loss, "rate": X * Y, "alike": 5 + 1e-9 * X}


def test_a_whole_grid_is_a_map_of_cells_with_a_gap_where_a_member_failed(columns: dict[str, np.ndarray]) -> None:
    figure = sweep_figures(columns, ["x", "y"], ["loss", "rate", "alike"])["map"]
    (mesh,) = [each for each in figure.axes[0].collections if isinstance(each, QuadMesh)]
    shown: np.ndarray = np.ma.filled(np.ma.asarray(mesh.get_array()), np.nan)
    np.testing.assert_array_equal(shown, columns["loss"].reshape(2, 3))
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("x", "y")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert "loss" in titles and "rate" in titles and "alike" not in titles


def test_members_off_a_grid_are_points(columns: dict[str, np.ndarray]) -> None:
    few = {name: values[[0, 1, 3, 5]] for name, values in columns.items()}
    figure = sweep_figures(few, ["x", "y"], ["rate"])["map"]
    (points,) = [each for each in figure.axes[0].collections if isinstance(each, PathCollection)]
    np.testing.assert_array_equal(points.get_offsets(), np.stack([few["x"], few["y"]], axis=1))
    np.testing.assert_array_equal(points.get_array(), few["rate"])


def test_each_member_is_a_line_from_the_least_to_the_largest_value_of_each_column(
    columns: dict[str, np.ndarray],
) -> None:
    axes = sweep_figures(columns, ["x", "y"], ["rate"])["parallel"].axes[0]
    lines = np.array([line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 3])  # type: ignore[arg-type]
    expected = [(v - v.min()) / np.ptp(v) for v in (columns["x"], columns["y"], columns["rate"])]
    np.testing.assert_allclose(lines, np.stack(expected, axis=1))
    assert {text.get_text() for text in axes.texts} >= {"1", "4", "0.1", "0.2"}


def test_pictures_of_an_earlier_sweep_without_data_now_are_removed(
    columns: dict[str, np.ndarray], tmp_path: Path
) -> None:
    drawn = draw_sweep(columns, ["x", "y"], ["loss"], tmp_path)
    assert [path.name for path in drawn] == ["response.png", "map.png", "parallel.png"]
    assert [path.name for path in draw_sweep(columns, ["x"], ["loss"], tmp_path)] == ["response.png"]
    assert [path.name for path in tmp_path.iterdir()] == ["response.png"]
    assert draw_sweep(columns, [], ["loss"], tmp_path) == [] and not list(tmp_path.iterdir())


def test_the_waterfall_of_fits_has_the_ends_in_ascending_order(columns: dict[str, np.ndarray]) -> None:
    assert "waterfall" not in sweep_figures(columns, ["x"], ["loss"])
    axes = sweep_figures({**columns, "iterations": X}, [], [])["waterfall"].axes[0]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), np.sort(columns["loss"])[:5])
    assert axes.get_title(loc="left") == "5 members, 1 without a result" and axes.get_yscale() == "linear"
    wide = {"loss": np.array([1e-3, 1.0]), "iterations": np.ones(2)}
    assert sweep_figures(wide, [], [])["waterfall"].axes[0].get_yscale() == "log"


def test_identified_values_are_drawn_about_their_truth() -> None:
    values = np.array([1.0, 1.1, 1.2, np.nan, 0.9])
    fixed, varied = np.full(5, 1.05), np.array([1.0, 1.0, 1.1, 1.0, 1.0])
    columns = {"a": values, "a truth": fixed, "b": values, "b truth": varied}
    one, other = sweep_figures(columns, [], [])["truth"].axes
    for axes, shown, truth in ((one, values, 1.05), (other, values - varied, 0.0)):
        assert sum([patch.get_height() for patch in axes.patches]) == 4  # type: ignore[attr-defined]
        assert [line.get_xdata()[0] for line in axes.lines] == pytest.approx([truth, np.nanmean(shown)])  # type: ignore[index]
    assert (one.get_xlabel(), other.get_xlabel()) == ("a", "b, less its truth")
