"""The replay of a run: what a small program in the page draws at any time of the motion (page/replay.js).

A replay is a dictionary for JSON: the times, the extent, and layers of points, lines, shapes, pictures or curves.
"""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np

from simphys.plot import style
from simphys.plot.motion.pendulum import read_joints
from simphys.plot.motion.recorded import ON_TRACK, Motion, read_motion
from simphys.plot.motion.rigid import are_rigid
from simphys.plot.motion.surroundings import find_turn
from simphys.record import Recording
from simphys.report import grid_layers, solids
from simphys.report.packing import encode, pack, pack_indices

FRAMES, SMOOTH = 160, 480
"""Largest number of frames; and of motions of few numbers, whose paths are drawn."""
FEW = 100
"""Largest number of coordinates of such a motion."""
NUMBERS = 1_400_000
"""Largest number of coordinates of all frames: about 2 MB of text."""
POINTS = 12_000
"""Largest number of points that a browser draws at each frame; more are thinned."""
DEFORMATION = f"{style.FIELDS}/deformation"
RADIUS, GROUP = f"{style.BODIES}/radius", f"{style.BODIES}/group"

Replay = dict[str, Any]


def make_replay(recording: Recording) -> Replay:
    """Make the replay of a run. Errors: NotRecorded for a run without a motion."""
    for make in (_replay_bodies, _replay_pendulum, _replay_grid, _replay_values):
        try:
            found = make(recording)
        except style.NotRecorded:
            continue
        ramps = {
            name: encode((255 * matplotlib.colormaps[name](np.arange(256))[:, :3]).astype(np.uint8))
            for name in ("viridis", "RdBu_r")
        }
        return {**found, "time_unit": recording.units.time, "ramps": ramps, "palette": list(style.COLORS)}
    raise style.NotRecorded("replay", "needs a recorded motion", "none", "Run the scene again.")


def choose_frames(count: int, numbers: int) -> np.ndarray:
    """Choose frames of `numbers` coordinates each, evenly among `count`."""
    most = max(2, min(SMOOTH if numbers <= FEW else FRAMES, NUMBERS // max(numbers, 1)))
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


def _replay_bodies(recording: Recording) -> Replay:
    motion = read_motion(recording)
    if motion.dim == 1 and motion.position.shape[1] > ON_TRACK:
        return _replay_chain(motion)
    stride = -(-motion.position.shape[1] // POINTS) if not len(motion.springs) else 1
    kept = np.arange(0, motion.position.shape[1], stride)
    frames = choose_frames(len(motion.time), len(kept) * motion.dim)
    position = motion.within[frames][:, kept]
    if motion.dim == 1:  # bodies on a line are drawn in a plane
        position = np.concatenate([position, np.zeros_like(position)], axis=2)
    found = _frame(motion.time[frames], position, motion.position_unit, motion.ended)
    if are_rigid(recording):
        found["layers"], found["low"], found["high"] = solids.shape_layers(recording, motion, frames)
        return found
    around, low, high = solids.surroundings(recording, motion, frames, position)
    found["low"], found["high"] = low.tolist(), high.tolist()
    points: dict[str, Any] = {
        "kind": "points",
        "name": "bodies" if RADIUS in recording else "nodes" if len(motion.springs) else "particles",
        "place": pack(position, low, high),
        "colours": _colours(recording, motion, frames, kept),
        "pinned": np.flatnonzero(np.isin(kept, motion.pinned)).tolist(),
        "size": _size(position[0], low, high) if motion.dim > 1 and len(kept) > 200 else 0.0,
    }
    if RADIUS in recording:
        points["radius"] = recording[RADIUS].tolist()
    layers = [points]
    if 0 < len(motion.springs) <= 20_000:
        lines = {"kind": "lines", "name": "springs", "of": "nodes", "pairs": pack_indices(motion.springs)}
        borne = stress_colours(recording, motion.time[frames], np.arange(len(motion.springs)))
        layers.insert(0, lines | {"colours": borne})
    else:
        points["colours"] += stress_colours(recording, motion.time[frames], kept)
    if stride > 1:
        found["remark"] = f"{len(kept):,} of {motion.position.shape[1]:,} particles are shown"
    found["layers"] = [
        *around,
        *solids.goal_layers(recording, len(motion.pinned) + len(motion.free)),
        *layers,
        *_measured(recording, motion, frames),
    ]
    found["turn"] = find_turn(recording.scene, motion.dim)
    return found


def _frame(time: np.ndarray, position: np.ndarray, unit: str, ended: str) -> Replay:
    flat = position.reshape(-1, position.shape[-1])
    low, high = flat.min(axis=0), flat.max(axis=0)
    return {
        "dim": position.shape[-1],
        "unit": unit,
        "time": np.round(time, 9).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "ended": ended,
        "remark": "",
    }


def _size(position: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Estimate the distance of neighbours at positions [n, dim]: the diameter of their marks."""
    from scipy.spatial import KDTree

    distance, _ = KDTree(position).query(position[:: max(1, len(position) // 500)], k=2)
    return float(np.median(distance[:, 1]))


def _colours(recording: Recording, motion: Motion, frames: np.ndarray, kept: np.ndarray) -> list[dict[str, Any]]:
    """Quantities that can colour the points: piece of material, speed, and the gradient of the loss by position."""
    found: list[dict[str, Any]] = []
    if GROUP in recording and np.ptp(group := recording[GROUP]):
        found.append({"name": "piece", "group": group[kept].astype(int).tolist()})
    speed = np.linalg.norm(motion.velocity[frames][:, kept], axis=2)
    found.append(_colour("speed", motion.velocity_unit, speed))
    if f"{DEFORMATION}/value" in recording:
        found += _density(recording, motion, frames, kept)
    path = "adjoint/position"
    if path in recording and "adjoint/time" in recording:
        time, gradient = recording["adjoint/time"], recording[path]
        rows = np.clip(np.searchsorted(time, motion.time[frames] - 1e-12), 0, len(time) - 1)
        size = np.linalg.norm(gradient[rows][:, kept], axis=2)
        if np.isfinite(size).all() and size.max() > 0:
            found.append(_colour("|∂loss/∂position|", style.per_unit(motion.position_unit), size, log=True))
    return found


def stress_colours(recording: Recording, time: np.ndarray, kept: np.ndarray) -> list[dict[str, Any]]:
    """Colours by what bodies, or the springs between them, bear: blue and red where that has two signs."""
    found = []
    for name in recording.keys("stresses"):
        path = f"stresses/{name}/value"
        rows = np.searchsorted(recording[f"stresses/{name}/time"], time - 1e-12)
        if rows[-1] >= recording.shape(path)[0]:  # the end of the file is lost
            continue
        values = np.stack([recording.row(path, int(row))[kept] for row in rows])
        low, high = np.percentile(values, (0.5, 99.5))
        if not np.isfinite(values).all() or high <= low:
            continue
        ramp = "RdBu_r" if low < 0 < high else "viridis"
        low, high = (-max(high, -low), max(high, -low)) if low < 0 < high else (low, high)
        about = {"name": style.words(name), "unit": style.unit_of(recording, path), "ramp": ramp, "log": False}
        found.append(about | {"low": float(low), "high": float(high), "values": pack(values, low, high, bits=8)})
    return found


def _density(recording: Recording, motion: Motion, frames: np.ndarray, kept: np.ndarray) -> list[dict[str, Any]]:
    """Relative density of particles: 1 / det F of their elastic deformation gradients."""
    rows = np.searchsorted(recording[f"{DEFORMATION}/time"], motion.time[frames] - 1e-12)
    if rows[-1] >= recording.shape(f"{DEFORMATION}/value")[0]:  # the end of the file is lost
        return []
    stretch = np.stack([np.linalg.det(recording.row(f"{DEFORMATION}/value", int(row))[kept]) for row in rows])
    density = 1 / np.maximum(stretch, 1e-3)
    if not np.isfinite(density).all() or np.ptp(density) == 0:
        return []
    low, high = (float(np.percentile(density, share)) for share in (0.5, 99.5))
    packed = pack(density, low, max(high, low + 1e-9), bits=8)
    return [{"name": "relative density", "unit": "", "low": low, "high": high, "log": False, "values": packed}]


def _colour(name: str, unit: str, values: np.ndarray, *, log: bool = False) -> dict[str, Any]:
    low, high = 0.0, float(values.max()) or 1.0
    if log:  # six decades at most
        low = max(high * 1e-6, float(values[values > 0].min()))
        values = np.log10(np.maximum(values, low))
        packed = pack(values, np.log10(low), np.log10(high), bits=8)
    else:
        packed = pack(values, low, high, bits=8)
    return {"name": name, "unit": unit, "low": low, "high": high, "log": log, "values": packed}


def _measured(recording: Recording, motion: Motion, frames: np.ndarray) -> list[dict[str, Any]]:
    """Measured positions of bodies, of those whose every coordinate is measured; nothing between samples.

    In a periodic box each is the image that is nearest to the body.
    """
    if "observations/value" not in recording:
        return []
    about = recording.attrs("observations")
    fields, places = np.asarray(about["fields"]), np.asarray(about.get("components", []))
    time, value, weight = (recording[f"observations/{name}"] for name in ("time", "value", "weight"))
    columns: dict[int, dict[int, int]] = {}
    for column, (field, place) in enumerate(zip(fields, places, strict=False)):
        index = [int(i) for i in str(place).split(",") if i]
        if field == "position" and len(index) == 2:
            columns.setdefault(index[0], {})[index[1]] = column
    whole = {node: axes for node, axes in columns.items() if len(axes) == motion.dim}
    if not whole or len(time) < 2:
        return []
    nearest = np.abs(time[:, None] - motion.time[frames]).argmin(axis=0)
    far = np.abs(time[nearest] - motion.time[frames]) > 2 * np.median(np.diff(time))
    chosen = np.array([[axes[axis] for axis in range(motion.dim)] for axes in whole.values()])
    seen = value[nearest][:, chosen]
    beyond = seen - motion.within[frames][:, list(whole)]
    seen = seen - motion.box_shift(beyond, np.rint)
    hidden = (weight[nearest][:, chosen] <= 0).any(axis=2) | far[:, None] | ~np.isfinite(seen).all(axis=2)
    seen = np.where(hidden[..., None], 0.0, seen)
    if motion.dim == 1:
        seen = np.concatenate([seen, np.zeros_like(seen)], axis=2)
    low, high = seen.reshape(-1, seen.shape[2]).min(axis=0), seen.reshape(-1, seen.shape[2]).max(axis=0)
    shown = pack((~hidden).astype(float), 0.0, 255.0, bits=8)
    return [{"kind": "rings", "name": "measured", "place": pack(seen, low, high), "shown": shown}]


def _replay_chain(motion: Motion) -> Replay:
    """Many nodes on a line: the displacement of each, as a curve."""
    moved = (motion.position - motion.position[0])[..., 0]
    frames = choose_frames(len(moved), moved.shape[1])
    label = style.with_unit("displacement", motion.position_unit)
    return curve_replay(motion.time[frames], np.arange(moved.shape[1]), moved[frames], "node", label, motion.ended)


def curve_replay(
    time: np.ndarray, across: np.ndarray, values: np.ndarray, label: str, quantity: str, ended: str
) -> Replay:
    """Replay values [T, n] over places [n] as a curve that moves."""
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 0.5
    layer = {
        "kind": "curve",
        "name": quantity,
        "across": across.astype(float).tolist(),
        "values": pack(values, low - margin, high + margin),
    }
    return {
        "dim": 2,
        "unit": "",
        "axes": [label, quantity],
        "time": np.round(time, 9).tolist(),
        "low": [float(across[0]), low - margin],
        "high": [float(across[-1]), high + margin],
        "layers": [layer],
        "ended": ended,
        "remark": "",
    }


def _replay_pendulum(recording: Recording) -> Replay:
    time, joints = read_joints(recording)
    frames = choose_frames(len(time), joints[0].size)
    joints = joints[frames]
    found = _frame(time[frames], joints, recording.units.length, style.describe_end(recording, time, time))
    low, high = joints.min(axis=(0, 1)), joints.max(axis=(0, 1))
    low, high = low - 0.1 * (high - low).max(), high + 0.1 * (high - low).max()
    found["low"], found["high"] = low.tolist(), high.tolist()
    pairs = np.stack([np.arange(joints.shape[1] - 1), np.arange(1, joints.shape[1])], axis=1)
    points = {"kind": "points", "name": "masses", "place": pack(joints, low, high), "colours": [], "pinned": [0]}
    lines = {"kind": "lines", "name": "links", "of": "masses", "pairs": pack_indices(pairs), "thick": True}
    found["layers"] = [
        {"kind": "trail", "name": "path of the end", "place": pack(joints[:, -1:], low, high)},
        lines,
        {**points, "size": 0.0, "large": True},
    ]
    return found


def _replay_grid(recording: Recording) -> Replay:
    return grid_layers.replay_grid(recording, FRAMES, NUMBERS, curve_replay)


def _replay_values(recording: Recording) -> Replay:
    """Values of the state along time, as curves with a cursor: for states that are no places."""
    names = [name for name in recording.keys(style.FIELDS) if f"{style.FIELDS}/{name}/value" in recording]
    if not names:
        raise style.NotRecorded("replay", "needs a recorded motion", "none", "Run the scene again.")
    name = names[0]
    path = f"{style.FIELDS}/{name}"
    time, values = style.frames(recording, f"{path}/time", f"{path}/value")
    time, values = style.sound_frames(time, values.reshape(len(values), -1))
    label = style.with_unit(style.words(name), style.unit_of(recording, f"{path}/value"))
    frames = choose_frames(len(time), values.shape[1])
    return curve_replay(time[frames], np.arange(values.shape[1]), values[frames], "entry", label, "")
