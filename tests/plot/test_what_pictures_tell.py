"""Pictures show what matters about a motion: the slope, the ground, the links, the names of bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from simphys import plot
from simphys.app.workflow import simulate
from simphys.experiment.scene import load_scene
from simphys.plot import style
from simphys.plot.components import element_name
from simphys.plot.motion.pendulum import read_joints
from simphys.plot.motion.recorded import read_motion
from simphys.plot.motion.stages import network_stage
from simphys.plot.motion.surroundings import find_box
from simphys.record import MemoryRecorder, Recording, list_parts, name_group
from simphys.report.replay import make_replay
from simphys.scenefile.body_names import BodyNames

SCENES = Path(__file__).resolve().parents[2] / "scenes"


def run(name: str, *overrides: str) -> Recording:
    return simulate(load_scene(SCENES / f"{name}.toml", overrides))


def grounds(figure: Any) -> list[np.ndarray]:
    patches = [patch for axes in figure.axes for patch in axes.patches if isinstance(patch, Polygon)]
    return [np.asarray(patch.get_xy()) for patch in patches]


def test_a_slope_is_drawn_as_one_with_gravity_downwards() -> None:
    figure = plot.trajectory(run("mass_spring/jelly", "time.steps=200", "output.every=20"))
    first, *others = grounds(figure)
    assert len(others) == 5
    assert np.ptp(first[:, 1]) > 0.2 and np.ptp(first[:, 0]) > 0.2
    figure.draw_without_rendering()
    (label,) = [text for text in figure.subfigs[0].texts if text.get_text() == "up [m]"]
    assert label.get_window_extent().x0 > 0  # whole, although ticks such as -0.25 are wide


def test_a_robot_stands_on_its_ground() -> None:
    figure = plot.trajectory(run("mass_spring/robot_14", "time.steps=40"))
    ground = grounds(figure)[0]
    low, high = figure.axes[0].get_ylim()
    top = float(ground[:, 1].max())
    assert top == pytest.approx(0.1) and low < top < high


def test_charges_on_a_table_have_no_height() -> None:
    figure = plot.trajectory(run("charges/find_charges"))
    assert not any("height" in axes.get_title(loc="left") for axes in figure.axes)
    assert any(axes.get_title(loc="left") == "mean position of 8 charges" for axes in figure.axes)
    last = [axes for axes in figure.axes if axes.get_title(loc="left").startswith("t =")][-1]
    (paths,) = [each for each in last.collections if isinstance(each, LineCollection)]
    assert len(paths.get_segments()) == 8


def test_the_links_of_a_pendulum_have_their_lengths_and_are_drawn() -> None:
    recording = run("pendulum/double")
    _, joints = read_joints(recording)
    lengths = np.linalg.norm(np.diff(joints, axis=1), axis=2)
    assert lengths == pytest.approx(np.broadcast_to([0.5, 0.38], lengths.shape))
    angle = recording["fields/angle/value"][0]
    assert joints[0, 1] == pytest.approx([0.5 * np.sin(angle[0]), -0.5 * np.cos(angle[0])])
    assert plot.trajectory(recording).axes[0].get_title(loc="left").startswith("links at 8 times")


@pytest.mark.parametrize(("labels", "expected"), [(["length"], [0.56, 0.56]), (["length, a", "length, b"], [0.5, 0.6])])
def test_experiments_of_a_pendulum_are_drawn_with_the_length_that_was_found(labels: Any, expected: Any) -> None:
    scene = {"simulator": {"name": "pendulum"}, "geometry": {"length": [0.45]}, "unknowns": {"length": {}}}
    recorder = MemoryRecorder(kind="optimize", provenance={}, scene=scene)
    for name in ("a", "b"):
        angles = np.array([[0.1], [0.2]])
        recorder.write(f"{name_group(name)}/fields/angle", time=np.array([0.0, 1.0]), value=angles)
    recorder.write("unknowns", label=labels, value=np.array(expected[: len(labels)]))
    found = [read_joints(part)[1] for part in list_parts(recorder.recording).values()]
    assert [np.linalg.norm(joints[0, 1]) for joints in found] == pytest.approx(expected)


def test_rigid_bodies_are_called_by_their_names() -> None:
    figure = plot.trajectory(run("rigid/two_balls"))
    legends = [legend for axes in figure.axes if (legend := axes.get_legend()) is not None]
    names = [text.get_text() for legend in legends for text in legend.get_texts()]
    assert "left ball x" in names and not any("node" in name for name in names)


def test_links_of_a_chain_are_called_so() -> None:
    double = run("pendulum/double", "time.duration=0.1")
    above = plot.fields(double).axes[0].get_legend()
    assert above is not None and [text.get_text() for text in above.get_texts()] == ["link 0", "link 1"]
    labels: Any = double.attrs("observations")["labels"]
    assert list(labels) == ["angle of link 0", "angle of link 1"]


def test_the_gradient_by_a_number_without_unit_has_that_of_the_loss() -> None:
    assert style.per_unit("") == "loss"
    assert style.per_unit("m/s") == "loss / (m/s)"


def test_a_field_has_the_unit_that_it_was_measured_in() -> None:
    recording = run("heat/source", "time.steps=4", "output.every=2")
    assert list(np.asarray(recording.attrs("grid")["units"])[:1]) == ["deg C"]
    assert "temperature [deg C]" in [axes.get_ylabel() for axes in plot.snapshots(recording).axes]


def test_a_field_that_stays_as_it_is_takes_one_panel() -> None:
    figure = plot.snapshots(run("wave/drop", "time.steps=8", "grid.cells=[16, 16]", "output.every=2", "loss.terms=[]"))
    assert figure.get_suptitle().endswith("the same at all times")
    assert len([axes for axes in figure.axes if axes.get_title(loc="left").startswith("t =")]) == 1


def test_bodies_with_names_are_called_by_them() -> None:
    recording = run("rigid/walker_2d", "time.steps=64", "time.dt=1e-3")
    names = style.body_names(recording)
    assert names.of(0) == "trunk" and names.of(7) == "body 7"
    legends = [legend for axes in plot.fields(recording).axes if (legend := axes.get_legend()) is not None]
    assert "left shank" in [text.get_text() for text in legends[0].get_texts()]


def test_an_obstacle_is_drawn_with_its_outline() -> None:
    figure = plot.snapshots(run("smoke/drag", "time.duration=1.0"), field="smoke")
    (outline,) = [each for each in figure.axes[-2].collections if each.get_zorder() == 4]
    places = np.concatenate([path.vertices for path in outline.get_paths()])
    distance = np.linalg.norm(places - [0.32, 0.32], axis=1)
    assert distance == pytest.approx(0.08, abs=0.002)


def test_few_bodies_with_names_have_their_curves() -> None:
    figure = plot.trajectory(run("rigid/walker_2d", "time.steps=8"))
    curves = figure.axes[-1]
    legend = curves.get_legend()
    assert legend is not None and not legend.get_title().get_text()
    named = [text.get_text() for text in legend.get_texts()]
    assert named == ["trunk", "left thigh", "left shank", "right thigh", "right shank", "x", "y"]
    shown = [line for line in curves.get_lines() if np.size(line.get_xdata())]
    assert len(shown) == 10
    assert len({line.get_color() for line in shown}) == 5 and len({line.get_linestyle() for line in shown}) == 2


def boxes(axes: Any) -> list[int]:
    """Count the edges of each dashed box."""
    drawn: list[Any] = [each for each in axes.collections if isinstance(each, LineCollection)]
    return [len(each.get_segments()) for each in drawn if each.get_linestyles()[0][1] is not None]


def test_the_periodic_box_of_molecules_is_drawn() -> None:
    smaller = ("geometry.cells=[2, 2, 2]", "simulator.cutoff=0.55", "time.steps=300", "output.every=100")
    part = next(iter(list_parts(run("molecular/argon", *smaller)).values()))
    boundary: Any = part.attrs("particles/nodes/box")["boundary"]
    assert list(boundary) == ["periodic"] * 3
    edge = (32 / 19.0) ** (1 / 3)
    assert find_box(part) == pytest.approx(np.array([[0.0] * 3, [edge] * 3]))
    panels = [axes for axes in plot.trajectory(part).axes if axes.get_title(loc="left").startswith("t =")]
    assert [boxes(axes) for axes in panels] == [[12]] * 4
    axes = Figure().subplots()
    stage = network_stage(read_motion(part), part)
    stage.prepare(axes)
    assert boxes(axes) == [12]
    (box,) = [layer for layer in make_replay(part)["layers"] if layer["name"] == "periodic box"]
    assert np.array(box["points"]) == pytest.approx(np.array([[0.0] * 3, [edge] * 3]), abs=1e-5)


def test_nodes_without_a_box_have_none() -> None:
    motion = run("charges/find_charges", "time.steps=4")
    assert find_box(motion) is None and not boxes(plot.trajectory(motion).axes[0])


def test_a_field_that_is_nowhere_has_no_picture(tmp_path: Path) -> None:
    """A flow without smoke shows its velocity alone, in the folder, in a report's pictures, and in the replay."""
    motion = run("smoke/cavity", "time.steps=4", "output.every=2", "state.smoke=[]")
    assert {path.name for path in plot.all_figures(motion, tmp_path)} >= {"snapshots_velocity.png"}
    assert not list(tmp_path.glob("*smoke*"))
    assert [name for name, _ in plot.draw_figures(motion, [], None) if "smoke" in name] == []
    assert not any("smoke" in str(layer["name"]) for layer in make_replay(motion)["layers"])
    lit = run("smoke/drag", "time.steps=4", "output.every=2")
    assert "snapshots_smoke" in [name for name, _ in plot.draw_figures(lit, [], None)]


def test_the_force_of_a_stream_has_axes_and_a_turn_in_space_too() -> None:
    force = plot.fields(run("smoke/drag", "time.steps=10")).axes[0].get_legend()
    assert force is not None and [text.get_text() for text in force.get_texts()] == ["x", "y"]
    names = BodyNames("body", ("hand",))
    assert element_name((0, 2), (1, 3), names) == "hand z" and element_name((1, 0), (2, 4), names) == "body 1 w"
    assert element_name((0, 4), (1, 6), names) == "hand [4]" and element_name((3, 4), (5, 6)) == "[3, 4]"


def test_a_motor_is_called_by_its_joint() -> None:
    (axes,) = plot.control(run("rigid/push", "time.steps=3")).axes
    assert [curve.get_label() for curve in axes.lines] == ["carriage along x", "hand along y"]
    assert axes.get_title(loc="left").startswith("control, 2 motors: from ")


def test_titles_write_what_is_nothing_beside_the_largest_value_as_zero() -> None:
    assert style.bounds(np.array([2.23e-183, 0.01])) == ("0", "0.01")
    assert style.bounds(np.array([-3.0, 1e-20])) == ("\N{MINUS SIGN}3", "0")
    assert style.bounds(np.array([1e-9, 2e-9])) == ("1e\N{MINUS SIGN}9", "2e\N{MINUS SIGN}9")
    assert style.bounds(np.zeros(2)) == ("0", "0")
    assert style.bounds(np.array([1.0, np.inf])) == ("1", "inf") and style.bounds(np.array([1.0, np.nan]))[1] == "nan"
