"""Simulated motion: components along time for a few nodes, snapshots of the network for many."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.components import FEW, are_few, draw_components, name_components
from simphys.plot.motion.discs import RADIUS, draw_discs
from simphys.plot.motion.network import draw_chain, draw_network
from simphys.plot.motion.pendulum import draw_pendulum, is_pendulum
from simphys.plot.motion.recorded import Motion, read_motion
from simphys.plot.motion.rigid import are_rigid, draw_rigid
from simphys.record import Recording
from simphys.scenefile.body_names import BodyNames


def trajectory(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the motion of the nodes.

    Few free components: position and velocity along time, pinned nodes dashed. Many: springs and nodes at six times,
    coloured by speed, with pinned nodes as squares, and the height along time (in 3-D seen from 20° above; in 1-D the
    displacement of every node along time instead). Discs in the plane: their paths, from above. Rigid bodies: their
    shapes at six times. Pendulums: their links. Saved at `path` if given. Errors: NotRecorded if there is no motion.
    """
    if is_pendulum(recording):
        return draw_pendulum(recording, path)
    motion = read_motion(recording)
    with style.style():
        figure = style.new_figure(recording, 5.6, motion.ended)
        if RADIUS in recording and motion.dim == 2:
            draw_discs(figure, motion, recording)
        elif are_rigid(recording):
            draw_rigid(figure, motion, recording)
        elif are_few(motion.free, motion.dim):
            _draw_curves(figure, motion, style.body_names(recording))
        elif motion.dim == 1:
            draw_chain(figure, motion)
        else:
            draw_network(figure, motion, recording)
        style.save(figure, path)
    return figure


def _draw_curves(figure: Figure, motion: Motion, names: BodyNames) -> None:
    panels = figure.subplots(2, 1, sharex=True)
    for axes, values, name, unit in (
        (panels[0], motion.position, "position", motion.position_unit),
        (panels[1], motion.velocity, "velocity", motion.velocity_unit),
    ):
        draw_components(axes, motion.time, values, motion.free, names)
        axes.set_ylabel(style.with_unit(name, unit))
        if motion.free.size:
            low, high = style.bounds(values[:, motion.free])
            axes.set_title(f"{name}: from {low} to {high} {unit}".rstrip())
    for number, level in enumerate(motion.position[0, motion.pinned].ravel()[:FEW]):
        panels[0].axhline(level, color="#888888", linewidth=1, linestyle="--", label="" if number else "pinned")
    name_components(panels[0], motion.free, motion.dim, names)
    style.label_time(panels[-1])
    figure.align_ylabels(panels)
