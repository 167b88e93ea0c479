"""Small systems of material points without any symmetry, and bodies on grids for tests of physics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.simulators.mpm.collider import Collider
from simphys.simulators.mpm.laws import LAWS
from simphys.simulators.mpm.model import MPM, Params, State

ALL = tuple(LAWS)
"""All laws. A model with all of them is compiled only once, whichever laws its particles have."""
SMALL = {2: (9, 8), 3: (7, 6, 8)}
"""Numbers of nodes in the grids of small systems, with margin 2."""
RANGES = {
    "young_modulus": (1.0, 2.0),
    "poisson_ratio": (0.1, 0.4),
    "bulk_modulus": (0.5, 1.0),
    "yield_stress": (0.1, 0.2),
    "friction_angle": (0.4, 0.7),
    "hardening": (2.0, 4.0),
    "critical_compression": (0.02, 0.03),
    "critical_stretch": (0.005, 0.01),
}
"""Ranges of the parameters of laws; with density 1 and the time step of `system` the material is stable."""

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """The inputs of a rollout."""

    model: MPM
    params: Params
    state: State
    control: Tensor | None = None

    def inputs(self) -> dict[str, Tensor]:
        """Return all inputs by name."""
        found = {name: getattr(r, name) for r in (self.state, self.params) for name in r.names()}
        if self.control is not None:
            found["control"] = self.control
        return found

    def leaves(self) -> dict[str, Tensor]:
        """Return the inputs that are not empty."""
        return {name: x for name, x in self.inputs().items() if x.size}

    def using(self, leaves: Mapping[str, Tensor]) -> Case:
        """Replace some of the inputs."""

        def exchanged(record: Any) -> Any:
            return record.replace(**{name: leaves[name] for name in record.names() if name in leaves})

        return Case(self.model, exchanged(self.params), exchanged(self.state), leaves.get("control", self.control))

    def fresh(self) -> Case:
        """Copy the inputs to new leaves without gradients."""
        return self.using({name: tensor(x.data, requires_grad=True) for name, x in self.leaves().items()})

    def starting(self, **values: Any) -> Case:
        """Replace some of the inputs by arrays."""
        return self.using({name: tensor(value) for name, value in values.items()})


def system(
    dim: int,
    *,
    law: str | None = None,
    laws: tuple[str, ...] = ALL,
    particles: int = 8,
    walls: tuple[str, ...] = (),
    colliders: tuple[Collider, ...] = (),
    actuators: int = 2,
    steps: int = 0,
    batch: int | None = None,
    batched: tuple[str, ...] | None = None,
    seed: int = 0,
) -> Case:
    """Build a random system in which every term matters; all inputs require a gradient.

    With `steps` it has a control. The particles have `laws` in turn, or all have `law`. With `batch`, the `batched`
    inputs (by default all) have a batch axis.
    """
    random = np.random.default_rng(seed)
    cells, n = SMALL[dim], particles
    chosen = np.full(n, laws.index(law)) if law else np.arange(n) % len(laws)
    fibre = random.normal(size=(n, dim))
    model = MPM(
        cells=cells,
        spacing=0.1,
        dt=0.02,
        particles=n,
        laws=laws,
        law=chosen.astype(np.int32),
        actuator=(np.arange(n) % (actuators + 1) - 1).astype(np.int32) if actuators else None,
        fibre=fibre / np.linalg.norm(fibre, axis=1, keepdims=True),
        walls=walls or ("separating", "slip", "friction", "sticking", "separating", "friction")[: 2 * dim],
        margin=2,
        colliders=colliders,
        skin=0.15,
    )
    shapes = {**model.state_shapes(), **model.param_shapes()}
    if steps:
        shapes["control"] = (steps, *(model.control_shape() or ()))
    if batch is not None:
        shapes |= {name: (batch, *shapes[name]) for name in shapes if batched is None or name in batched}
    volume = (0.5 * model.spacing) ** dim
    rest = np.array([LAWS[name].REST for name in laws])[chosen]
    low, high = 1.3 * model.spacing, (np.array(cells) - 2.3) * model.spacing

    def drawn(name: str) -> Array:
        shape = shapes[name]
        match name:
            case "position":
                return random.uniform(low, high, shape)
            case "velocity" | "collider_velocity":
                return 0.5 * random.normal(size=shape)
            case "affine":
                return 2 * random.normal(size=shape)
            case "deformation":
                return np.eye(dim) + 0.05 * random.normal(size=shape)
            case "plastic":
                return rest[: shape[-1]] + random.uniform(0.01, 0.03, shape)
            case "collider_position":
                return random.uniform(low, high, shape)
            case "mass" | "volume":
                return volume * random.uniform(0.8, 1.2, shape)
            case "gravity":
                return random.normal(size=shape)
            case "wall_friction" | "collider_friction":
                return random.uniform(0.2, 0.4, shape)
            case "control":
                return 0.2 * random.normal(size=shape)
            case _ if name in RANGES:
                return random.uniform(*RANGES[name], shape)
            case _:
                return random.normal(size=shape)

    leaves = {name: tensor(drawn(name), requires_grad=0 not in shapes[name]) for name in shapes}
    params, state = Params(*[leaves[name] for name in Params.names()]), State(*[leaves[name] for name in State.names()])
    return Case(model, params, state, leaves.get("control"))


TANK = (64, 16)
"""Numbers of nodes in the grid of `block`, between slip walls."""


def block(
    lower: tuple[float, float], upper: tuple[float, float], *, law: str = "fixed_corotated", dt: float = 2e-3
) -> Case:
    """Build a rectangle of density 1 at rest, without gravity, in a grid of spacing 1/16; corners are in spacings.

    It has four particles per cell, Young's modulus 1 (Poisson's ratio 0.3) or bulk modulus 1. The model has all laws,
    so that it is compiled only once.
    """
    dx = 1 / 16
    axes = [dx * (np.arange(2 * round(b - a)) / 2 + a + 0.25) for a, b in zip(lower, upper, strict=True)]
    position = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    n = len(position)
    law_index = np.full(n, ALL.index(law), np.int32)
    model = MPM(TANK, dx, dt, n, ALL, law_index, walls=("slip",) * 4, mass_floor=1e-200)
    known = {
        "young_modulus": 1.0, "poisson_ratio": 0.3, "bulk_modulus": 1.0, "yield_stress": 0.05, "friction_angle": 0.6,
        "hardening": 5.0, "critical_compression": 0.02, "critical_stretch": 0.005, "mass": dx * dx / 4,
        "volume": dx * dx / 4, "deformation": np.eye(2), "plastic": LAWS[law].REST, "position": position,
    }  # fmt: skip
    shapes = {**model.state_shapes(), **model.param_shapes()}
    values = {name: tensor(np.broadcast_to(known.get(name, 0.0), shape).copy()) for name, shape in shapes.items()}
    params, state = Params(*[values[name] for name in Params.names()]), State(*[values[name] for name in State.names()])
    return Case(model, params, state)


def weights(shape: tuple[int, ...], seed: int = 1) -> Tensor:
    """Draw random weights, which reduce a result to a scalar without favouring any entry."""
    return tensor(np.random.default_rng(seed).standard_normal(shape))


def tolerance(f64: float, f32: float) -> float:
    """Choose the tolerance for the precision of this process."""
    return f64 if runtime.real_dtype() == np.float64 else f32
