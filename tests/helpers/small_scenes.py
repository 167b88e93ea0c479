"""Small scenes given as tables, with a measurement made by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import lfilter

from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import from_dict

TRUTH = {"stiffness": 9.0, "drag": 0.1, "start": 1.0}


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The tables with some keys exchanged, at any depth; None takes a key out."""
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def build(base: dict[str, Any], **changes: Any) -> Scene:
    return build_scene(from_dict(merged(base, changes)))


def oscillator(file: Path, **changes: Any) -> Scene:
    """A glider on a spring for 4 s, about two oscillations, from wrong values of three unknowns.

    Written to `file`: the motion with the TRUTH at 100 uneven times, with noise of 0.01.
    """
    tables: dict[str, Any] = {
        "simulator": {"name": "mass_spring", "integrator": "velocity_verlet"},
        "time": {"dt": 0.01, "duration": 4.0},
        "geometry": {
            "position": [[TRUTH["start"]]],
            "anchors": [{"node": 0, "point": [0.0], "stiffness": TRUTH["stiffness"]}],
        },
        "material": {"drag": TRUTH["drag"]},
        "unknowns": {
            "stiffness": {"parameter": "stiffness", "start": 7.0, "transform": "log", "unit": "N/m"},
            "drag": {"parameter": "drag", "entries": [0], "start": 0.2, "bounds": [0.0, 5.0], "unit": "1/s"},
            "start": {"parameter": "position", "entries": [0], "start": 0.8, "unit": "m"},
        },
        "observations": {
            "file": str(file),
            "channels": [{"column": 1, "field": "position", "node": 0, "unit": "m", "sigma": 0.01}],
        },
        "output": {"folder": str(file.parent / "run")},
    }
    if not file.exists():
        true = build(tables, observations=None, unknowns=None)
        random = np.random.default_rng(0)
        times = np.sort(random.uniform(0.01, 3.99, 100))
        grid = np.arange(true.steps + 1) * true.dt
        seen = np.interp(times, grid, true.rollout().position.data[:, 0, 0]) + 0.01 * random.standard_normal(100)
        np.savetxt(file, np.column_stack([times, seen]))
    return build(tables, **changes)


def oscillator_with_memory(folder: Path) -> Scene:
    """The same, seen with noise that is alike in neighbouring samples, of which the scene says nothing."""
    oscillator(folder / "seen.txt")
    time, value = np.loadtxt(folder / "seen.txt").T
    value += 0.03 * lfilter([0.6], [1, -0.8], np.random.default_rng(1).standard_normal(time.size))
    np.savetxt(folder / "correlated.txt", np.column_stack([time, value]))
    channel = {"column": 1, "field": "position", "node": 0, "unit": "m", "sigma": 0.03}
    return oscillator(folder / "seen.txt", observations={"file": str(folder / "correlated.txt"), "channels": [channel]})


def soft_square(**changes: Any) -> Scene:
    """A 2-D lattice of 2 x 3 nodes, 20 steps of the scheme that compiles fastest: to end half a metre to the right."""
    tables: dict[str, Any] = {
        "simulator": {"name": "mass_spring", "integrator": "semi_implicit_euler"},
        "time": {"dt": 0.01, "steps": 20},
        "geometry": {"lattice": {"shape": [2, 3], "spacing": 0.5}},
        "material": {"stiffness": 30.0, "damping": 0.1, "drag": 0.2},
        "environment": {"gravity": [0.0, -1.0]},
        "state": {"velocity": [[0.1 * i, -0.05 * i] for i in range(6)]},
        "loss": {"terms": [{"kind": "final_state", "target_offset": [0.5, 0.0]}]},
    }
    return build(tables, **changes)


SINES: dict[str, Any] = {
    "kind": "sines",
    "channels": 2,
    "waves": 3,
    "frequency": 20.0,
    "amplitude": [0.5, 2.0],
    "weight": [[0.3, -0.2, 0.1], [0.4, 0.5, -0.6]],
    "bias": [0.1, -0.3],
}
KNOTS: dict[str, Any] = {"kind": "knots", "value": [[0.3, -0.2], [0.1, 0.4], [0.5, -0.6], [0.2, 0.7]]}


def driven_square(control: dict[str, Any] = SINES, **changes: Any) -> Scene:
    """The soft square with two actuators, of one spring and of two."""
    actuators = [{"springs": [0]}, {"springs": {"first": 3, "last": 4}}]
    driven = {"geometry": {"actuators": actuators}, "material": {"amplitude": 0.3}, "control": control}
    return soft_square(**merged(driven, changes))
