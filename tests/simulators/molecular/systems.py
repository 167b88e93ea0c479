"""Small systems of atoms in which no term vanishes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.simulators.molecular import Molecular, Params, State

from ...helpers.contract import System

NAMES = (*State.names(), *Params.names())


def system(
    dim: int = 3,
    *,
    per_axis: int = 3,
    bins: int = 4,
    batch: int | None = None,
    batched: tuple[str, ...] = ("position", "velocity", "epsilon"),
    seed: int = 0,
    linked: bool = False,
    **options: Any,
) -> System:
    """Make a warm, jagged lattice of atoms of different masses, all tensors of which require a gradient.

    linked: three of them are a molecule, of two bonds and an angle, and all are charged.
    """
    random, spacing = np.random.default_rng(seed), 1.12
    grid = np.stack(np.meshgrid(*[np.arange(per_axis)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    n, length = len(grid), per_axis * spacing
    box = (length, *[length] * (dim - 2), math.inf)
    chosen: dict[str, Any] = {
        "box": box,
        "dt": 0.01,
        "cutoff": 1.65,
        "switch_on": 1.1,
        "skin": 0.1,
        "bins": bins,
        "neighbours": 26,
    }
    if linked:
        chosen |= {"bonds": np.array([[0, 1], [1, 4]]), "angles": np.array([[0, 1, 4]])}
        chosen |= {"coulomb": 1.4, "damping": 1.2}
    model = Molecular(n, **chosen | options)
    lead = () if batch is None else (batch,)
    values = {
        "position": spacing * grid + random.uniform(-0.08, 0.08, (*lead, n, dim)),
        "velocity": random.normal(0, 1.0, (*lead, n, dim)),
        "elapsed": np.full((), 0.05),
        "thermo": random.uniform(0.5, 1.5, 3 if bins else 0),
        "rdf": random.uniform(0.5, 1.5, bins),
        "displacement": random.normal(0, 1.0, (n, dim) if bins else 0),
        "msd": np.zeros(1 if bins else 0),
        "mass": random.uniform(0.8, 1.3, n),
        "epsilon": random.uniform(0.9, 1.3, lead),
        "sigma": np.array(1.03),
        "steepness": np.array(5.0),
        "friction": np.array(0.7),
        "temperature": np.array(1.2),
        "bond_stiffness": random.uniform(30.0, 50.0, len(model.bonds)),
        "rest_length": random.uniform(1.0, 1.2, len(model.bonds)),
        "angle_stiffness": random.uniform(10.0, 20.0, len(model.angles)),
        "rest_angle": random.uniform(1.7, 1.9, len(model.angles)),
        "charge": random.uniform(0.5, 1.0, n if linked else 0) * np.resize([1, -1], n if linked else 0),
    }
    if batch is not None:
        values |= {name: values[name][0] for name in ("position", "velocity", "epsilon") if name not in batched}
    made = {name: tensor(value, requires_grad=True) for name, value in values.items()}
    params = Params(**{name: made[name] for name in Params.names()})
    return System(model, params, State(**{name: made[name] for name in State.names()}))
