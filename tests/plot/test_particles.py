"""Snapshots of thousands of particles show their positions, their material, and the walls and colliders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from simphys import plot
from simphys.plot import style
from simphys.plot.motion.surroundings import project

from .particle_runs import GRID, particle_run

AWAY = np.array([-0.5, 0.8660254, 0.0])
"""Horizontal direction away from the viewer."""


def snapshots(figure: Figure) -> list[Any]:
    return [axes for axes in figure.axes if axes.images]


def drawn(axes: Any) -> np.ndarray:
    """Positions of the pixels of a snapshot that show a particle, [pixels, 2]."""
    image = np.asarray(axes.images[0].get_array())
    low_x, high_x, low_y, high_y = axes.images[0].get_extent()
    y, x = np.nonzero(image[..., 3])
    size = np.array([high_x - low_x, high_y - low_y]) / np.array([image.shape[1], image.shape[0]])
    return np.array([low_x, low_y]) + (np.stack([x, y], axis=1) + 0.5) * size


def colours(axes: Any) -> set[tuple[int, ...]]:
    image = np.asarray(axes.images[0].get_array())
    return {tuple(colour) for colour in image[image[..., 3] > 0][:, :3].tolist()}


def test_six_snapshots_show_where_the_particles_are(tmp_path: Path) -> None:
    figure = plot.particles(particle_run(tmp_path / "run"))
    shown = snapshots(figure)
    assert [axes.get_title(loc="left") for axes in shown][::5] == ["t = 0 s", "t = 1 s"] and len(shown) == 6
    for axes, shift in ((shown[0], 0.0), (shown[5], 0.5)):
        low, high = drawn(axes).min(axis=0), drawn(axes).max(axis=0)
        np.testing.assert_allclose([low, high], np.array([[0.5 + shift, 0.5], [0.88 + shift, 0.88]]), atol=0.03)
    assert shown[3].get_xlabel() == "x [m]" and shown[3].get_ylabel() == "y [m]"
    assert "drift" in str(figure.get_suptitle())


def test_the_mean_position_is_drawn_along_time(tmp_path: Path) -> None:
    axes = plot.particles(particle_run(tmp_path / "run")).axes[-1]
    curves = {str(line.get_label()): np.asarray(line.get_ydata()) for line in axes.lines}
    np.testing.assert_allclose(curves["x"], np.linspace(0.69, 1.19, 9))
    np.testing.assert_allclose(curves["y"], 0.69)
    assert axes.get_xlabel() == "time [s]" and "400 particles" in axes.get_title(loc="left")


def test_colours_show_the_speed_of_one_piece_of_material(tmp_path: Path) -> None:
    figure = plot.particles(particle_run(tmp_path / "run"))
    assert len(colours(snapshots(figure)[0])) == 1
    assert "speed [m/s]" in [axes.get_ylabel() for axes in figure.axes]


def test_colours_distinguish_pieces_of_material(tmp_path: Path) -> None:
    figure = plot.particles(particle_run(tmp_path / "run", group=np.repeat([0, 1], 200)))
    expected = {tuple(int(255 * part) for part in to_rgb(color)) for color in style.COLORS[:2]}
    assert colours(snapshots(figure)[0]) == expected
    assert "speed [m/s]" not in [axes.get_ylabel() for axes in figure.axes]


def test_pieces_of_one_name_have_one_colour_and_one_line_of_the_legend(tmp_path: Path) -> None:
    scene = {"bodies": [{"name": "trunk"}, {"name": "leg"}, {"name": "leg"}], "grid": GRID}
    figure = plot.particles(particle_run(tmp_path / "run", group=np.repeat([0, 1, 2, 1], 100), scene=scene))
    (legend,) = [legend for part in figure.subfigs for legend in part.legends]
    assert [text.get_text() for text in legend.get_texts()] == ["trunk", "leg"]
    assert len(colours(snapshots(figure)[0])) == 2


def test_in_space_the_nearest_particles_hide_those_behind_them(tmp_path: Path) -> None:
    square = np.stack(np.meshgrid(np.arange(20), [0.0], np.arange(20)), -1).reshape(-1, 3) * 0.01
    both, group = np.concatenate([square, square + 0.02 * AWAY]), np.repeat([0, 1], 400)
    scene = {"grid": {**GRID, "cells": [20] * 3}}
    for number, order in enumerate((slice(None), slice(None, None, -1))):
        folder = tmp_path / f"run {number}"
        run = particle_run(folder, position=both[order], drift=(0, 0, 0), group=group[order], scene=scene)
        axes = snapshots(plot.particles(run))[0]
        image = np.asarray(axes.images[0].get_array()).astype(int)
        blue = image[..., 2] > image[..., 0]  # the first colour; the second one is red
        inside = np.abs(np.linspace(-1, 1, image.shape[0]))[:, None] + np.abs(np.linspace(-1, 1, image.shape[1])) < 0.4
        assert blue[inside].all()


def test_walls_are_drawn(tmp_path: Path) -> None:
    for dim, edges in ((2, 4), (3, 12)):
        position = np.random.default_rng(0).uniform(0.5, 0.9, (300, dim))
        scene = {"grid": {**GRID, "cells": [20] * dim}}
        run = particle_run(tmp_path / f"run {dim}", position=position, drift=(0.0,) * dim, scene=scene)
        (lines,) = [each for each in snapshots(plot.particles(run))[0].collections if isinstance(each, LineCollection)]
        segments = np.array(lines.get_segments())
        assert len(segments) == edges
        if dim == 2:
            np.testing.assert_allclose([segments.min(), segments.max()], [0.2, 1.8])


def outlines(axes: Any) -> list[np.ndarray]:
    return [np.asarray(patch.get_xy()) for patch in axes.patches if isinstance(patch, Polygon)]


def test_colliders_are_drawn_where_they_are_at_each_time(tmp_path: Path) -> None:
    shapes = [("sphere", [0.1]), ("box", [0.2, 0.1]), ("capsule", [0.2, 0.1])]
    scene = {"grid": GRID, "colliders": [{"shape": shape, "size": size} for shape, size in shapes]}
    time = np.linspace(0, 1, 9)
    position = np.stack([np.array([[0.5, 1.0], [1.0, 1.2], [1.0, 0.6]])] * 9)
    position[:, 0, 0] += 0.3 * time
    rotation = np.zeros((9, 3, 1))
    rotation[:, 1:, 0] = np.pi / 2 * time[:, None]
    run = particle_run(tmp_path / "run", scene=scene, colliders=(position, rotation))
    first, *_, last = snapshots(plot.particles(run))
    for axes, reach in ((first, [[0.1, 0.1], [0.2, 0.1], [0.3, 0.1]]), (last, [[0.1, 0.1], [0.1, 0.2], [0.1, 0.3]])):
        middle = position[0 if axes is first else -1]
        for outline, centre, extent in zip(outlines(axes), middle, reach, strict=True):
            np.testing.assert_allclose(np.ptp(outline, axis=0) / 2, extent, atol=1e-3)
            np.testing.assert_allclose((outline.min(axis=0) + outline.max(axis=0)) / 2, centre, atol=1e-3)


def test_a_plane_is_drawn_across_the_picture_on_the_side_without_material(tmp_path: Path) -> None:
    scene = {"grid": GRID, "colliders": [{"shape": "plane", "size": []}]}
    position, rotation = np.full((9, 1, 2), [0.7, 0.4]), np.full((9, 1, 1), np.pi)
    run = particle_run(tmp_path / "run", scene=scene, colliders=(position, rotation))
    axes = snapshots(plot.particles(run))[0]
    (outline,) = outlines(axes)
    assert outline[:, 1].min() == pytest.approx(0.4) and outline[:, 1].max() > 0.4  # turned upside down
    assert outline[:, 0].min() < axes.get_xlim()[0] and outline[:, 0].max() > axes.get_xlim()[1]


def test_a_collider_in_space_has_the_silhouette_of_its_shape(tmp_path: Path) -> None:
    scene = {"grid": {**GRID, "cells": [20] * 3}, "colliders": [{"shape": "sphere", "size": [0.1]}]}
    position, rotation = np.full((9, 1, 3), 1.0), np.tile([1.0, 0, 0, 0], (9, 1, 1))
    cloud = np.random.default_rng(0).uniform(0.5, 0.9, (300, 3))
    run = particle_run(tmp_path / "run", position=cloud, drift=(0, 0, 0), scene=scene, colliders=(position, rotation))
    (outline,) = outlines(snapshots(plot.particles(run))[0])
    radius = np.linalg.norm(outline - project(np.full(3, 1.0))[0], axis=1)
    np.testing.assert_allclose(radius, 0.1, rtol=0.02)


def test_few_or_joined_bodies_need_another_picture(tmp_path: Path) -> None:
    few = particle_run(tmp_path / "few", position=np.random.default_rng(0).uniform(size=(20, 2)))
    with pytest.raises(plot.NotRecorded, match="needs 200 bodies or more"):
        plot.particles(few)
    with pytest.raises(plot.NotRecorded, match="joined ones"):
        plot.particles(particle_run(tmp_path / "joined", springs=3))


def test_all_figures_has_it_instead_of_those_of_few_bodies(tmp_path: Path) -> None:
    names = [path.name for path in plot.all_figures(particle_run(tmp_path / "many"), tmp_path / "pictures")]
    assert names == ["particles.png", "animation.gif"]
    few = particle_run(tmp_path / "few", position=np.random.default_rng(0).uniform(size=(20, 2)))
    assert [path.name for path in plot.all_figures(few, tmp_path / "pictures")] == ["trajectory.png"]
    assert not (tmp_path / "pictures" / "animation.gif").exists()
