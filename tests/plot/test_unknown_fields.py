"""Pictures of a fit on a grid: unknown fields and their gradients, adjoints of fields, signals of receivers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from simphys import plot
from simphys.record import Recording

from .grid_runs import grid_run, ripple

CELLS = (12, 8)
UNITS = {"height": "m", "speed": "m/s"}
SOUGHT = np.arange(24, 96)  # the unknown entries: all rows but the first three
START, TRUTH = np.full(72, 4.0), 4 + ripple(CELLS, 3)[1].ravel()[SOUGHT]
VALUE = 0.5 * (START + TRUTH)
BOX = {"parameter": "speed", "entries": {"first": 3, "last": 11}, "unit": "m/s"}


def fitted(
    folder: Path,
    unknown: dict[str, Any] = BOX,
    *,
    truth: bool = True,
    gradient: float = 3.0,
    deviation: bool = False,
) -> Recording:
    """Record a fit in two stages by frequency, with gradient `gradient` in theta at the start and 5 at the end."""
    speed = np.full(96, 2.0)
    speed[SOUGHT] = VALUE
    theta = np.stack([START, VALUE, START])
    groups: dict[str, dict[str, Any]] = {
        "unknowns": {"label": [f"c[{i}]" for i in range(72)] + ["other"], "start": [*START, 0], "value": [*VALUE, 0]},
        "parameters": {"speed": speed.reshape(CELLS)},
        "adjoint": {"step": np.arange(5), "time": np.linspace(0, 1, 5), "height": 3 * ripple(CELLS, 5)},
    }
    if truth:
        groups["truth/c"] = {"truth": TRUTH}
    if deviation:
        deviations = np.append(np.linspace(0.1, 0.8, 72), 9.0)
        groups["laplace"] = {"standard_deviation": deviations, "prior": np.append(np.full(72, 0.9), 9.0)}
    theta = np.concatenate([theta, np.zeros((3, 1))], axis=1)
    low, high = np.inf, 6.0
    tables: dict[str, dict[str, Any]] = {
        "iterations": {
            "theta": theta,
            "loss": np.array([3.0, 1.0, 2.0]),
            "stage": np.array([0, 1, 1]),
            "horizon": np.ones(3),
        }
    }
    tables["iterations"]["lowpass"] = np.array([high, low, low])
    tables["iterations"]["gradient"] = np.array([np.full(73, gradient), np.full(73, 5.0), np.zeros(73)])
    return grid_run(
        folder / "run",
        {"height": ripple(CELLS, 5)},
        cells=CELLS,
        units=UNITS,
        scene={"unknowns": {"c": unknown, "other": {"parameter": "dt"}}},
        groups=groups,
        tables=tables,
    )


def panels(run: Recording) -> dict[str, Axes]:
    return {axes.get_title(loc="left"): axes for axes in plot.medium(run).axes if axes.images}


def numbers(axes: Axes) -> np.ndarray:
    """Values of an image, [*cells]."""
    return np.ma.filled(np.ma.asarray(axes.images[0].get_array()), np.nan).T.ravel()


def test_start_found_and_truth_share_a_scale(tmp_path: Path) -> None:
    shown = panels(fitted(tmp_path))
    half = 50 * np.linalg.norm(START - TRUTH) / np.linalg.norm(TRUTH)
    start, found = f"start: {2 * half:.3g} % off", f"found: {half:.3g} % off"
    for title, values in ((start, START), (found, VALUE), ("truth", TRUTH)):
        np.testing.assert_allclose(numbers(shown[title])[SOUGHT], values, rtol=1e-6)
        np.testing.assert_allclose(numbers(shown[title])[:24], 2.0)  # not unknown
    assert shown[start].images[0].get_clim() == shown["truth"].images[0].get_clim()
    np.testing.assert_allclose(numbers(shown["found \N{MINUS SIGN} truth"])[SOUGHT], VALUE - TRUTH, atol=1e-6)


def test_a_field_that_is_the_same_everywhere_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "START", np.full(72, 2.0))  # as around it
    words = {title.partition(":")[0]: axes.texts for title, axes in panels(fitted(tmp_path)).items()}
    assert [text.get_text() for text in words["start"]] == ["2 everywhere"]
    assert not words["found"] and not words["truth"]


def test_small_numbers_share_a_power_of_ten_beside_the_unit(tmp_path: Path) -> None:
    figure = plot.medium(fitted(tmp_path, gradient=6e-6))
    (key,) = [axes for axes in figure.axes if axes.get_xlabel() == "∂loss/∂speed\n[$10^{-6}$ loss / (m/s)]"]
    figure.draw_without_rendering()
    shown = [text.get_text() for text in key.get_xticklabels() if text.get_text()]
    assert {"\N{MINUS SIGN}1.5", "0", "1.5"} <= set(shown)
    assert key.xaxis.get_offset_text().get_text() == ""


def test_gradients_are_those_at_the_start_and_at_the_best_point(tmp_path: Path) -> None:
    shown = panels(fitted(tmp_path))
    first, last = shown["gradient at the start,\nup to 6 Hz"], shown["gradient at the end,\nall frequencies"]
    np.testing.assert_allclose(numbers(first)[SOUGHT], 3 / START, rtol=1e-6)
    np.testing.assert_allclose(numbers(last)[SOUGHT], 5 / START, rtol=1e-6)
    assert np.isnan(numbers(last)[:24]).all()
    low, high = last.images[0].get_clim()
    assert low == -high == -1.25


def test_the_gradient_of_a_logarithmic_unknown_is_with_respect_to_its_value(tmp_path: Path) -> None:
    shown = panels(fitted(tmp_path, BOX | {"transform": "log"}))
    np.testing.assert_allclose(numbers(shown["gradient at the end,\nall frequencies"])[SOUGHT], 5 / VALUE, rtol=1e-6)


def test_the_gradient_of_a_smooth_unknown_is_called_smoothed(tmp_path: Path) -> None:
    figure = plot.medium(fitted(tmp_path, BOX | {"smooth": 1.0, "scale": 2.0}))
    assert "∂loss/∂speed, smoothed\n[loss / (m/s)]" in [axes.get_xlabel() for axes in figure.axes]


def test_a_recorded_standard_deviation_is_drawn(tmp_path: Path) -> None:
    shown = panels(fitted(tmp_path, deviation=True))["standard deviation\n(prior: 0.9 m/s)"]
    np.testing.assert_allclose(numbers(shown)[SOUGHT], np.linspace(0.1, 0.8, 72), rtol=1e-6)
    assert np.isnan(numbers(shown)[:24]).all() and shown.images[0].get_clim()[0] > 0  # a scale of its own


def test_without_a_truth_there_is_no_picture_of_it(tmp_path: Path) -> None:
    shown = panels(fitted(tmp_path, truth=False))
    assert [title.split()[0] for title in shown] == ["start", "found", "gradient", "gradient"]


def test_tied_unknowns_are_no_fields(tmp_path: Path) -> None:
    with pytest.raises(plot.NotRecorded, match="draws unknown fields: none"):
        plot.medium(fitted(tmp_path, BOX | {"tied": True}))


def test_a_field_and_its_gradient_are_drawn_at_the_same_times(tmp_path: Path) -> None:
    figure = plot.adjoint_fields(fitted(tmp_path))
    shown, field = [axes for axes in figure.axes if axes.images], ripple(CELLS, 5)
    assert len(shown) == 8
    for axes, frame in zip(shown, [0, 1, 3, 4, 0, 1, 3, 4], strict=True):
        expected = field[frame].ravel() * (1 if axes in shown[:4] else 3)
        np.testing.assert_allclose(numbers(axes), expected, rtol=1e-6)
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert "height\n[m]" in labels and "∂loss/∂height\n[loss / m]" in labels


def test_all_figures_includes_them(tmp_path: Path) -> None:
    made = {path.name for path in plot.all_figures(fitted(tmp_path), tmp_path)}
    assert {"medium_c.png", "snapshots_height.png", "adjoint_height.png", "animation_height.gif"} <= made
    assert "adjoint.png" not in made


def heard(folder: Path, *, shots: int | None, predicted: bool = True) -> Recording:
    lead = () if shots is None else (shots,)
    value = np.random.default_rng(0).normal(size=(9, *lead, 5))
    weight = np.ones(value.shape)
    weight[..., 2] = 0
    seen: dict[str, Any] = {"time": np.linspace(0, 1, 9), "value": value, "weight": weight}
    groups: dict[str, dict[str, Any]] = {"field_observations": {**seen, "attrs": {"field": "received", "unit": "Pa"}}}
    if predicted:
        groups["field_fit"] = {"predicted": 0.9 * value}
    field = {"height": ripple((4, 4), 2) if shots is None else np.stack([ripple((4, 4), 2)] * shots, axis=1)}
    return grid_run(folder, field, cells=(4, 4), units=UNITS, groups=groups, members=shots)


def coloured(axes: Axes) -> np.ndarray:
    """Values of an image, [time, receiver]."""
    return np.array(np.ma.asarray(axes.collections[0].get_array()).filled(np.nan))


def test_a_gather_shows_measured_predicted_and_difference(tmp_path: Path) -> None:
    figure = plot.gather(heard(tmp_path, shots=None))
    measured, predicted, difference = figure.axes[:3]
    seen, away = coloured(measured), coloured(difference)
    value = Recording(tmp_path)["field_observations/value"]
    np.testing.assert_allclose(seen[:, :2], value[:, :2])
    assert np.isnan(seen[:, 2]).all()  # missing
    np.testing.assert_allclose(away[:, 3:], 0.1 * value[:, 3:])
    assert measured.collections[0].get_clim() == predicted.collections[0].get_clim()
    assert "difference: 10 % (RMS)" in difference.get_title(loc="left")
    assert measured.get_ylim() == (1.0, 0.0) and measured.get_xlabel() == "receiver"
    assert {"received [Pa]", "difference of received [Pa]"} <= {axes.get_xlabel() for axes in figure.axes}


def test_the_first_middle_and_last_of_several_experiments_are_shown(tmp_path: Path) -> None:
    figure = plot.gather(heard(tmp_path, shots=7))
    titles = [axes.get_title(loc="left") for axes in figure.axes[:9:3]]
    assert titles == [f"measured, experiment {shot}" for shot in (0, 3, 6)]
    last = coloured(figure.axes[6])
    np.testing.assert_allclose(last[:, 0], Recording(tmp_path)["field_observations/value"][:, 6, 0])


def test_an_interrupted_run_shows_the_measurement(tmp_path: Path) -> None:
    figure = plot.gather(heard(tmp_path, shots=None, predicted=False))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["measured", ""]
