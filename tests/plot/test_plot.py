"""Pictures show the data of a recording with units; if data is missing, the error names it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure, SubFigure

from simphys import plot
from simphys.autograd.errors import InputError, StorageError
from simphys.record import Recorder, Recording


def recorder(folder: Path, *, kind: str, title: str) -> Recorder:
    return Recorder(folder, kind=kind, provenance={"seed": 0}, scene={"title": title})


def glider(time: np.ndarray, rate: float = 6.22, drag: float = 0.0137) -> tuple[np.ndarray, np.ndarray]:
    """Compute position [px] and velocity [px/s] of a damped oscillation about 4 px."""
    frequency = np.sqrt(rate - drag**2 / 4)
    decay = -74 * np.exp(-drag * time / 2)
    phase = frequency * time
    velocity = -decay * (frequency * np.sin(phase) + drag / 2 * np.cos(phase))
    return 4 + decay * np.cos(phase), velocity


def write_motion(run: Recorder, time: np.ndarray, position: np.ndarray, velocity: np.ndarray, unit: str) -> None:
    """Record position and velocity [T, n, dim]."""
    for name, value, unit_of_value in (("position", position, unit), ("velocity", velocity, f"{unit}/s")):
        group = f"particles/nodes/{name}"
        for step in range(len(time)):
            run.append(
                group, step=step, time=time[step], value=value[step], units={"value": unit_of_value, "time": "s"}
            )


def write_search(run: Recorder, stages: int) -> None:
    """Record a loss that falls in each stage and is different in the next."""
    for stage in range(stages):
        for index in range(4):
            run.append(
                "iterations",
                index=index,
                stage=stage,
                horizon=2.0 ** (stage - stages + 1),
                loss=2.0**stage * (5 + 400 * 10.0 ** (-2 * index)),
                gradient_norm=3e3 * 10.0 ** (-3 * index),
                step_length=0.0 if index == 0 else 0.3,
                theta=np.ones(2),
            )


def write_fit(
    run: Recorder, time: np.ndarray, value: np.ndarray, predicted: np.ndarray, nodes: list[int], **about: Any
) -> None:
    """Record value and predicted [N, C]; samples that are NaN are missing."""
    there = np.isfinite(value)
    run.write(
        "observations",
        time=time,
        value=np.where(there, value, 0.0),
        weight=np.where(there, 4.0, 0.0),
        attrs={
            "labels": [f"glider {node + 1}" for node in nodes],
            "units": ["px"] * len(nodes),
            "fields": ["position"] * len(nodes),
            "nodes": nodes,
            "axes": [0] * len(nodes),
        },
    )
    residual = np.where(there, predicted - value, 0.0)
    run.write("fit", time=time, predicted=predicted, residual=residual, attrs=about)


@pytest.fixture(scope="module")
def identified(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Recording of a glider fitted to 870 samples at uneven times, with a gap; node 1 is the pinned anchor."""
    folder = tmp_path_factory.mktemp("identified")
    random = np.random.default_rng(0)
    dense = np.linspace(0, 29, 580)
    stamps = np.sort(np.linspace(0.033, 29, 870) + random.uniform(-0.008, 0.008, 870))
    value = glider(stamps)[0] + random.normal(0, 0.41, 870)
    value[(stamps > 12) & (stamps < 13.5)] = np.nan
    position, velocity = (
        np.stack([c, np.full_like(c, fixed)], 1)[..., None] for c, fixed in zip(glider(dense), (4, 0), strict=True)
    )
    with recorder(folder, kind="optimize", title="One glider between springs on an air track") as run:
        run.write("particles/nodes", springs=[[0, 1]], pinned=[False, True])
        write_motion(run, dense, position, velocity, "px")
        write_fit(run, stamps, value[:, None], glider(stamps)[0][:, None], [0])
        write_search(run, stages=7)
        ringing = np.exp(0.05 * (29 - dense)) * np.sin(2.5 * (29 - dense))
        adjoint = np.stack([ringing, np.zeros_like(ringing)], 1)[..., None]
        run.write("adjoint", step=np.arange(580), time=dense, position=adjoint, velocity=0.4 * adjoint)
    return Recording(folder)


def lattice(shape: tuple[int, ...], spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Make nodes [n, dim] and springs [S, 2] to all neighbours, including face diagonals."""
    index = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1).reshape(-1, len(shape))
    offset = index[:, None] - index[None]
    near = (np.abs(offset).max(-1) == 1) & (np.abs(offset).sum(-1) <= 2)
    return index * spacing, np.argwhere(np.triu(near))


def shaken(shape: tuple[int, ...], *, frames: int = 60) -> tuple[np.ndarray, ...]:
    """Simulate a lattice hanging by its first column: time [T], position, velocity [T, n, dim], springs [S, 2]."""
    rest, springs = lattice(shape, 0.1)
    a, b = springs.T
    length = np.linalg.norm(rest[b] - rest[a], axis=1, keepdims=True)
    position, velocity = rest.copy(), np.zeros_like(rest)
    kept = []
    for step in range(10 * frames):
        if step % 10 == 0:
            kept.append((step * 2e-3, position.copy(), velocity.copy()))
        d = position[b] - position[a]
        force = 800 * (1 - length / np.linalg.norm(d, axis=1, keepdims=True)) * d
        total = np.zeros_like(rest)
        np.add.at(total, a, force)
        np.add.at(total, b, -force)
        total[:, -1] -= 9.81
        velocity = 0.999 * (velocity + 2e-3 * total) * (rest[:, :1] > 0)
        position = position + 2e-3 * velocity
    time, positions, velocities = (np.array(x) for x in zip(*kept, strict=True))
    return time, positions, velocities, springs


def record_lattice(folder: Path, shape: tuple[int, ...]) -> Recording:
    time, position, velocity, springs = shaken(shape)
    with recorder(folder, kind="run", title="A lattice hangs from a wall") as run:
        run.write("particles/nodes", springs=springs, pinned=position[0, :, 0] == 0)
        write_motion(run, time, position, velocity, "m")
        run.write("adjoint", step=np.arange(len(time)), time=time, position=velocity, velocity=position)
    return Recording(folder)


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Recording of 60 nodes in a plane, simulated without observations."""
    return record_lattice(tmp_path_factory.mktemp("hanging"), (12, 5))


def labels(figure: Figure) -> list[str]:
    """Axis labels, from the top panel to the lowest, and those that the panels of a part of the figure share."""
    own = [text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_ylabel()) if text]
    return [*own, *[text for part in figure.subfigs for text in (part.get_supxlabel(), part.get_supylabel()) if text]]


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def line(figure: Figure | SubFigure, panel: int, label: str) -> Any:
    (found,) = (line for line in figure.axes[panel].lines if line.get_label() == label)
    return found


def test_the_fit_shows_measurement_model_and_residuals_with_units(identified: Recording) -> None:
    figure = plot.fit(identified)
    assert labels(figure) == ["position [px]", "time [s]", "residual [px]"]
    assert titles(figure)[0] == "glider 1: 825 samples, 45 missing"
    residual = (identified["observations/value"] - identified["fit/predicted"])[identified["observations/weight"] > 0]
    assert titles(figure)[1] == f"residual: RMSE {np.sqrt(np.mean(residual**2)):.3g} px"
    np.testing.assert_array_equal(line(figure, 1, "measured − model").get_ydata(), residual)


def test_many_samples_hide_no_line_and_no_line_hides_them(identified: Recording) -> None:
    axes = plot.fit(identified).axes[0]
    samples, model = (line(axes.figure, 0, label) for label in ("measured", "model"))
    assert axes.lines.index(model) > axes.lines.index(samples)
    assert samples.get_alpha() < 0.6 and model.get_alpha() is None
    assert samples.get_markersize() > 2 * model.get_linewidth()


def test_missing_samples_are_not_drawn_and_their_gap_is_shaded(identified: Recording) -> None:
    figure = plot.fit(identified)
    drawn = line(figure, 0, "measured").get_xdata()
    np.testing.assert_array_equal(drawn, identified["observations/time"][identified["observations/weight"][:, 0] > 0])
    (gap,) = figure.axes[0].patches
    begin, end = gap.get_extents().transformed(figure.axes[0].transData.inverted()).intervalx
    assert (begin, end) == pytest.approx((12, 13.5), abs=0.05)


def test_the_model_line_is_dense_and_passes_through_the_predictions(identified: Recording) -> None:
    x, y = line(plot.fit(identified), 0, "model").get_data()
    assert len(x) == 870 + 580
    assert (np.diff(x) >= 0).all()
    np.testing.assert_allclose(y, glider(x)[0])


def test_a_line_that_is_known_at_samples_alone_ends_at_a_gap(tmp_path: Path) -> None:
    time = np.concatenate([np.linspace(0, 1, 20), np.linspace(3, 4, 20)])
    value = np.sin(9 * time)[:, None]
    with recorder(tmp_path, kind="optimize", title="The way between two gliders") as run:
        write_fit(run, time, value, value, [0], of_state=[False])
    x, y = line(plot.fit(Recording(tmp_path)), 0, "model").get_data()
    assert len(x) == 41 and x[20] == time[19] and np.flatnonzero(np.isnan(y)).tolist() == [20]


def test_the_worst_six_of_many_channels_are_drawn_in_their_order(tmp_path: Path) -> None:
    time = np.linspace(0, 3, 50)
    value = np.sin(time[:, None] * np.arange(1, 10))
    with recorder(tmp_path, kind="optimize", title="Nine gliders") as run:
        write_fit(run, time, value, value + 0.1 * np.arange(9, 0, -1), list(range(9)))
    figure = plot.fit(Recording(tmp_path))
    drawn = titles(figure)
    names = [title.split(":")[0] for title in drawn if title.startswith("glider")]
    assert names == [f"glider {number}" for number in (1, 4, 2, 5, 3, 6)]  # down the first column, then the second
    assert figure.get_suptitle() == "Nine gliders: worst 6 of 9 channels"
    assert len(figure.legends) == 1 and not any(axes.get_legend() for axes in figure.axes)  # titles have all the room
    assert [axes.get_xlabel() for axes in figure.axes].count("time [s]") == 2


def test_stages_of_a_growing_horizon_are_separate_curves_named_by_their_fraction(identified: Recording) -> None:
    loss, gradient_norm = plot.convergence(identified).axes
    assert [np.size(curve.get_xdata()) for curve in loss.lines] == [4] * 7
    assert [text.get_text() for text in loss.texts] == ["1/64", "1/32", "1/16", "1/8", "1/4", "1/2", "whole"]
    assert loss.get_yscale() == gradient_norm.get_yscale() == "log"
    assert loss.get_title(loc="left") == "whole horizon: loss 320, after 21 iterations in 7 stages"


def test_a_search_in_one_stage_is_one_curve(tmp_path: Path) -> None:
    with recorder(tmp_path, kind="optimize", title="") as run:
        write_search(run, stages=1)
    figure = plot.convergence(Recording(tmp_path))
    assert [len(axes.lines) for axes in figure.axes] == [1, 1]
    assert titles(figure)[0] == "loss from 405 to 5 in 3 iterations"
    assert labels(figure) == ["loss", "iteration", "gradient norm\n[loss / scaled unknown]"]


def test_a_perfect_start_is_drawn_though_its_gradient_has_no_logarithm(tmp_path: Path) -> None:
    with recorder(tmp_path, kind="optimize", title="") as run:
        run.append("iterations", stage=0, horizon=1.0, loss=0.0, gradient_norm=0.0)
    plot.convergence(Recording(tmp_path), tmp_path / "convergence.png")


def test_the_adjoint_has_a_curve_for_each_component_that_is_free(identified: Recording) -> None:
    figure = plot.adjoint(identified)
    assert labels(figure) == ["∂loss/∂position\n[loss / px]", "time [s]", "∂loss/∂velocity\n[loss / (px/s)]"]
    for panel, name in enumerate(("position", "velocity")):
        np.testing.assert_array_equal(line(figure, panel, "node 0").get_ydata(), identified[f"adjoint/{name}"][:, 0, 0])
        assert not [curve for curve in figure.axes[panel].lines if "node 1" in str(curve.get_label())]


def test_the_adjoint_of_many_nodes_is_a_median_and_a_band_for_each_axis(hanging: Recording) -> None:
    figure = plot.adjoint(hanging)
    free = ~hanging["particles/nodes/pinned"]
    for axis, name in enumerate("xy"):
        expected = np.median(hanging["adjoint/position"][:, free, axis], axis=1)
        np.testing.assert_allclose(line(figure, 0, name).get_ydata(), expected)
    assert len(figure.axes[0].collections) == 2


def test_the_motion_of_a_few_nodes_is_drawn_along_time(identified: Recording) -> None:
    figure = plot.trajectory(identified)
    assert labels(figure) == ["position [px]", "time [s]", "velocity [px/s]"]
    np.testing.assert_array_equal(
        line(figure, 0, "node 0").get_ydata(), identified["particles/nodes/position/value"][:, 0, 0]
    )
    assert set(line(figure, 0, "pinned").get_ydata()) == {4.0}


def test_the_motion_of_many_nodes_is_drawn_in_snapshots_of_one_colour_scale(hanging: Recording) -> None:
    figure = plot.trajectory(hanging)
    snapshots = [axes for axes in figure.axes if axes.get_title(loc="left").startswith("t = ")]
    assert len(snapshots) == 6
    assert {"x [m]", "y [m]", "position [m]", "time [s]", "speed [m/s]"} == set(labels(figure))
    speed = np.linalg.norm(hanging["particles/nodes/velocity/value"], axis=2)
    frames = [0, 12, 24, 35, 47, 59]
    for axes, frame in zip(snapshots, frames, strict=True):
        collections: Any = axes.collections
        springs, nodes, pinned = collections
        assert len(springs.get_array()) == len(hanging["particles/nodes/springs"])
        np.testing.assert_allclose(nodes.get_array(), speed[frame])
        np.testing.assert_array_equal(nodes.get_offsets(), hanging["particles/nodes/position/value"][frame])
        assert len(pinned.get_offsets()) == 5
        assert (nodes.norm.vmin, nodes.norm.vmax) == pytest.approx((0, speed[frames].max()))


def test_many_nodes_in_space_are_projected_and_on_a_line_drawn_by_their_displacement(tmp_path: Path) -> None:
    space = plot.trajectory(record_lattice(tmp_path / "space", (3, 2, 2)))
    assert {"across [m]", "up [m]", "position [m]", "time [s]", "speed [m/s]"} == set(labels(space))
    chain = plot.trajectory(record_lattice(tmp_path / "chain", (10,)))
    assert labels(chain) == ["time [s]", "node", "displacement [m]"]


def test_a_motion_that_blew_up_is_drawn_as_far_as_it_is_finite_and_says_so(tmp_path: Path) -> None:
    time, position, velocity, _ = shaken((4, 3), frames=20)
    position[10:] = np.inf
    velocity[8:10] = 1e200
    with recorder(tmp_path, kind="run", title="Too large a step") as run:
        write_motion(run, time, position, velocity, "m")
    figure = plot.trajectory(Recording(tmp_path), tmp_path / "trajectory.png")
    assert figure.get_suptitle() == "Too large a step: blown up after 0.14 s"


def test_all_figures_writes_those_that_apply(identified: Recording, tmp_path: Path) -> None:
    paths = plot.all_figures(identified, tmp_path / "pictures")
    assert [path.name for path in paths] == ["fit.png", "convergence.png", "adjoint.png", "trajectory.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)


def test_a_run_without_observations_has_no_picture_of_a_fit(hanging: Recording, tmp_path: Path) -> None:
    assert [path.name for path in plot.all_figures(hanging, tmp_path)] == ["adjoint.png", "trajectory.png"]


@pytest.mark.parametrize("draw", [plot.fit, plot.convergence])
def test_the_error_names_missing_and_recorded_data(hanging: Recording, draw: Callable[[Recording], Figure]) -> None:
    with pytest.raises(InputError, match=r"needs (observations|iterations)/.* of the run .*; found only adjoint, "):
        draw(hanging)


def test_a_run_with_nothing_to_draw_is_an_error(tmp_path: Path) -> None:
    recorder(tmp_path, kind="run", title="").close()
    message = r"must hold data for a picture; found its scene alone: it ended before .* with --overwrite"
    with pytest.raises(InputError, match=message):
        plot.all_figures(Recording(tmp_path), tmp_path)


def test_of_a_damaged_run_what_can_be_drawn_is_drawn_and_the_rest_named(identified: Recording, tmp_path: Path) -> None:
    class Damaged(Recording):
        """A recording without the last samples of its measurement."""

        def __getitem__(self, path: str) -> np.ndarray:
            values = super().__getitem__(path)
            return values[:-3] if path == "observations/value" else values

    assert identified.folder is not None
    damaged = Damaged(identified.folder)
    (tmp_path / "fit.png").write_text("of an earlier run")
    found = r"picture 'fit' of .*: needs the data that simphys records; found (IndexError|ValueError): .* Drawn all the"
    with pytest.raises(InputError, match=rf"{found} same: convergence\.png, adjoint\.png, trajectory\.png"):
        plot.all_figures(damaged, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adjoint.png", "convergence.png", "trajectory.png"]
    problems: list[Exception] = []
    assert [name for name, _ in plot.draw_figures(damaged, problems)] == ["convergence", "adjoint", "trajectory"]
    assert len(problems) == 1


def test_a_folder_that_cannot_be_written_is_an_error(hanging: Recording, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="must be a folder that can be created"):
        plot.all_figures(hanging, tmp_path / "file" / "pictures")
    with pytest.raises(StorageError, match="cannot be written"):
        plot.adjoint(hanging, tmp_path / "nowhere" / "adjoint.png")


def test_drawing_needs_no_pyplot_and_leaves_the_settings_alone(identified: Recording) -> None:
    script = """
import sys, matplotlib
before = dict(matplotlib.rcParams)
from simphys import plot
from simphys.record import Recording
plot.fit(Recording(sys.argv[1]))
assert "matplotlib.pyplot" not in sys.modules
assert dict(matplotlib.rcParams) == before
"""
    subprocess.run([sys.executable, "-c", script, str(identified.folder)], check=True)
