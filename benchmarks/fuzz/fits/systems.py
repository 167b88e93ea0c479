"""Small scenes of most simulators, and what their recordings see."""

from __future__ import annotations

from typing import Any, NamedTuple


class System(NamedTuple):
    """A scene without a fit."""

    tables: dict[str, Any]
    channels: tuple[tuple[str, Any, int], ...]
    """Field, node or cell, and axis of each channel."""
    sigma: float
    """Noise of all channels, in parts of the largest value of each."""


def _rod(position: list[float], inertia: Any, mass: float = 1.0) -> dict[str, Any]:
    return {"position": position, "mass": mass, "inertia": inertia}


def _hinges(*axes: list[float]) -> list[dict[str, Any]]:
    """Two hinges, of body 0 in the world and of body 1 on body 0."""
    zero = [0.0] * (3 if axes else 2)
    hinges: list[dict[str, Any]] = [
        {"kind": "revolute", "a": 0, "anchor": zero, "damping": 0.02},
        {"kind": "revolute", "a": 1, "b": 0, "anchor": [0.4, *zero[1:]], "damping": 0.01},
    ]
    for hinge, axis in zip(hinges, axes, strict=False):
        hinge["axis"] = axis
    return hinges


SYSTEMS: dict[str, System] = {
    "gliders": System(
        {
            "simulator": {"name": "mass_spring", "integrator": "velocity_verlet"},
            "time": {"dt": 0.02, "steps": 100},
            "geometry": {
                "position": [[1.0], [2.2]],
                "springs": [[0, 1]],
                "anchors": [{"node": 0, "point": [0.0], "stiffness": 9.0}],
            },
            "material": {"stiffness": 5.0, "drag": 0.1},
        },
        (("position", 0, 0), ("position", 1, 0)),
        1e-3,
    ),
    "lattice": System(
        {
            "simulator": {"name": "mass_spring", "integrator": "velocity_verlet"},
            "time": {"dt": 0.02, "steps": 60},
            "geometry": {"lattice": {"shape": [2, 2], "spacing": 0.5}},
            "material": {"stiffness": 30.0, "damping": 0.2, "drag": 0.2},
            "environment": {"gravity": [0.0, -1.0]},
            "state": {"velocity": [[0.3 * i, -0.2 * i] for i in range(4)]},
        },
        (("position", 0, 0), ("position", 3, 1), ("velocity", 2, 0)),
        1e-3,
    ),
    "pendulum": System(
        {
            "simulator": {"name": "pendulum"},
            "time": {"dt": 0.01, "steps": 150},
            "geometry": {"length": 0.8},
            "material": {"mass": 1.0, "damping": 0.1},
            "state": {"angle": [1.0]},
        },
        (("rate", 0, 0),),
        1e-3,
    ),
    "chain": System(
        {
            "simulator": {"name": "pendulum", "kind": "chain", "integrator": "rk4"},
            "time": {"dt": 0.01, "steps": 100},
            "geometry": {"length": [0.5, 0.4]},
            "material": {
                "mass": [1.0, 0.8],
                "damping": [0.05, 0.02],
                "dry_friction": [0.05, 0.0],
                "transition_rate": [0.05, 0.05],
            },
            "state": {"angle": [0.8, 1.1], "rate": [0.0, 0.3]},
        },
        (("angle", 0, 0), ("angle", 1, 0)),
        1e-3,
    ),
    "spherical": System(
        {
            "simulator": {"name": "pendulum", "kind": "spherical", "integrator": "variational"},
            "time": {"dt": 0.01, "steps": 100},
            "geometry": {"length": 0.8},
            "material": {"mass": 1.0, "damping": 0.1},
            "state": {"direction": [0.6, 0.0, -0.8], "rate": [0.4, 1.0, 0.3]},
        },
        (("direction", 0, 0), ("direction", 0, 1)),
        1e-3,
    ),
    "arm": System(
        {
            "simulator": {"name": "rigid"},
            "time": {"dt": 0.01, "steps": 80},
            "environment": {"gravity": [0.0, -9.81]},
            "bodies": [_rod([0.2, 0.0], 0.02), _rod([0.6, 0.0], 0.015, 0.7)],
            "joints": _hinges(),
        },
        (("orientation", 0, 0), ("orientation", 1, 0)),
        1e-3,
    ),
    "arm_in_space": System(
        {
            "simulator": {"name": "rigid"},
            "time": {"dt": 0.01, "steps": 60},
            "environment": {"gravity": [0.0, 0.0, -9.81]},
            "bodies": [_rod([0.2, 0.0, 0.0], [0.02, 0.03, 0.04]), _rod([0.6, 0.0, 0.0], [0.01, 0.02, 0.02], 0.7)],
            "joints": _hinges([0.0, 1.0, 0.0], [0.0, 0.0, 1.0]),
        },
        (("position", 0, 0), ("position", 1, 0), ("position", 1, 2)),
        1e-3,
    ),
    "bounce": System(
        {
            "simulator": {"name": "rigid"},
            "time": {"dt": 0.01, "steps": 80},
            "environment": {"gravity": [0.0, -9.81]},
            "planes": [{"normal": [0.0, 1.0]}],
            "bodies": [
                {
                    "shapes": [{"kind": "sphere", "radius": 0.05}],
                    "mass": 1.0,
                    "inertia": 1e-3,
                    "position": [0.0, 0.5],
                    "velocity": [1.8, 0.7],
                    "angular_velocity": 40.0,
                    "restitution": 0.7,
                    "friction": 0.2,
                }
            ],
        },
        (("position", 0, 0), ("position", 0, 1), ("orientation", 0, 0)),
        1e-3,
    ),
    "charges": System(
        {
            "simulator": {"name": "charges"},
            "time": {"dt": 0.02, "steps": 60},
            "geometry": {"position": [[0.0, 0.0], [1.0, 2.0], [-1.5, 0.5]]},
            "material": {"charge": [1.0, -2.0, 1.5], "mass": [1.0, 2.0, 1.5], "softening": 0.2},
            "state": {"velocity": [[0.3, 0.0], [0.0, -0.2], [0.1, 0.1]]},
        },
        (("position", 0, 0), ("position", 1, 1), ("position", 2, 0)),
        1e-3,
    ),
    "billiards": System(
        {
            "simulator": {"name": "billiards"},
            "time": {"dt": 0.025, "steps": 80},
            "geometry": {"position": [[0.60, 0.45], [1.90, 0.90], [2.06, 0.62]]},
            "material": {"radius": 0.03075, "restitution": 0.9},
            "table": {"lower": [0.0, 0.0], "upper": [2.84, 1.42], "restitution": 0.75, "deceleration": 0.1},
            "state": {"velocity": [[2.58, 0.94], [0.0, 0.0], [0.0, 0.0]]},
        },
        (("position", 0, 0), ("position", 0, 1), ("position", 1, 0)),
        1e-3,
    ),
    "heat": System(
        {
            "simulator": {"name": "heat"},
            "time": {"dt": 2.0, "steps": 60},
            "grid": {"cells": [8, 6], "spacing": 0.02, "sides": {"y-": 80.0, "x+": 20.0}},
            "medium": {"conductivity": 40.0, "heat_capacity": 3.6e6},
            "state": {"temperature": 20.0},
        },
        (("temperature", [2, 2], 0), ("temperature", [5, 3], 0)),
        1e-3,
    ),
    "jelly": System(
        {
            "simulator": {"name": "mpm"},
            "time": {"dt": 1e-3, "steps": 60},
            "grid": {"cells": [16, 16], "spacing": 0.0625},
            "bodies": [
                {
                    "name": "jelly",
                    "shape": "lattice",
                    "origin": [0.3, 0.26],
                    "counts": [5, 5],
                    "particle_spacing": 0.035,
                    "velocity": [0.5, -2.0],
                    "particle_mass": 1.0,
                    "particle_volume": 1.0,
                    "young_modulus": 250.0,
                    "poisson_ratio": 0.25,
                }
            ],
            "environment": {"gravity": [0.0, -9.8]},
        },
        (("position", 0, 0), ("position", 20, 1)),
        1e-4,
    ),
    "smoke": System(
        {
            "simulator": {"name": "smoke"},
            "time": {"dt": 0.1, "steps": 30},
            "grid": {"cells": [10, 10], "spacing": 0.1},
            "fluid": {"viscosity": 0.01},
            "state": {"velocity": [0.2, 0.1], "smoke": [{"centre": [0.4, 0.4], "radius": 0.2}]},
        },
        (("smoke", [4, 4], 0), ("smoke", [6, 5], 0)),
        1e-3,
    ),
    "wave": System(
        {
            "simulator": {"name": "wave"},
            "time": {"dt": 0.05, "steps": 60},
            "grid": {"cells": [12, 10], "spacing": 0.5},
            "medium": {"speed": 2.0},
            "sources": [{"position": [3.1, 2.2]}],
            "receivers": {"position": [[4.0, 1.3], [1.0, 2.0]]},
            "control": {"kind": "wavelet", "frequency": 1.0, "amplitude": 1.0},
        },
        (("received", 0, 0), ("received", 1, 0)),
        1e-2,
    ),
    "basin": System(
        {
            "simulator": {"name": "shallow_water"},
            "time": {"dt": 0.04, "steps": 60},
            "grid": {"cells": [10, 8], "spacing": 0.2},
            "medium": {"depth": 0.1, "friction": 0.01, "gravity": 9.81},
            "state": {"elevation": [{"centre": [0.9, 0.7], "radius": 0.35, "height": 0.03}]},
        },
        (("elevation", [2, 2], 0), ("elevation", [7, 5], 0)),
        1e-2,
    ),
    "elastic": System(
        {
            "simulator": {"name": "elastic", "order": 2},
            "time": {"dt": 2e-3, "steps": 60},
            "grid": {"cells": [16, 12], "spacing": 4.0, "layer": 3, "layer_frequency": 14.0},
            "medium": {"vp": 600.0, "vs": 300.0, "density": 1900.0},
            "sources": [{"position": [30.0, 0.0], "force": [0.0, 1e6]}],
            "receivers": {"lines": [{"start": [20.0, 0.0], "end": [44.0, 0.0], "count": 3}]},
            "control": {"kind": "wavelet", "frequency": 8.0},
        },
        (("received", 0, 0), ("received", 1, 1)),
        1e-2,
    ),
}
"""By name. Particles of fluids and molecules take longer than a case may."""
