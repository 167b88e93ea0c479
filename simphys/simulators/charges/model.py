"""Model, parameters and state of a system of point charges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.autograd.errors import InputError
from simphys.numerics.splitting import Stage, require_integrator, split_step
from simphys.simulator import Array, Arrays, Bodies, Model, Record, Shape, declare
from simphys.simulator.markers import Energetic, NodeMarkers, Whole
from simphys.simulator.model_checks import require_counts, require_dimensions


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    charge: Tensor = declare("bodies", "C", section="material")
    """Charge of each body, of either sign."""
    mass: Tensor = declare("bodies", "kg", sign="positive", section="material", standard=1.0)
    """Mass of each body."""
    coupling: Tensor = declare("", "N m^2/C^2", section="material", standard=1.0)
    """Force between two unit charges at unit distance; if positive, like charges repel."""
    softening: Tensor = declare("", "m", sign="positive", section="material")
    """Length below which the force between two charges falls off."""


@dataclass(frozen=True)
class State(Record):
    """Positions and velocities of the bodies."""

    position: Tensor = declare("bodies, dim", "m", section="geometry")
    """Position of each body."""
    velocity: Tensor = declare("bodies, dim", "m/s", section="state", standard=0.0)
    """Velocity of each body."""


class ChargeMarkers(Energetic, NodeMarkers):
    """Bodies, and their energies: sum m v^2 / 2, and that of all pairs at a distance r, k q_i q_j / (r^2 + s^2)^(1/2).

    An external field is no part of it: it may change with time.
    """

    def kinetic_energy(self, params: Any, state: Whole) -> Tensor:
        v = state["velocity"]
        found: Tensor = 0.5 * ops.sum(params.mass * ops.sum(v * v, axis=2), axis=1)
        return found

    def potential_energy(self, params: Any, state: Whole) -> Tensor:
        i, j = np.triu_indices(self.nodes, 1)
        d = state["position"][:, i] - state["position"][:, j]
        distance = ops.sqrt(ops.sum(d * d, axis=2) + params.softening * params.softening)
        found: Tensor = params.coupling * ops.sum(params.charge[i] * params.charge[j] / distance, axis=1)
        return found


@dataclass(frozen=True)
class Charges(Model):
    """Point charges, each of which acts on all others: all parts of the model that carry no gradient.

    The control of a step is an external field [N/C], [dim], uniform in space and constant during the step.
    """

    bodies: int
    """Number of bodies, n."""
    dim: int
    """Dimensions of space: 1, 2 or 3. The force law is always that of three dimensions."""
    dt: float
    """Time step [s]."""
    integrator: str = "velocity_verlet"
    """Integrator: semi_implicit_euler or velocity_verlet."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_counts(self, bodies=1, dim=1)
        require_integrator("Charges.integrator", self.integrator)
        require_dimensions(self, "dim", self.dim, 1, 2, 3)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Stages of a step, without drag; see `simphys.numerics.splitting`."""
        return split_step(self.integrator, self.dt)

    def control_shape(self) -> Shape | None:
        return (self.dim,)

    def describe_markers(self) -> ChargeMarkers:
        return ChargeMarkers(self.bodies, self.dim)

    def describe_bodies(self, params: Arrays) -> Bodies:
        return Bodies(pinned=np.zeros(self.bodies, dtype=bool), own=self.bodies)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Name the two bodies whose encounter is too close for the time step."""
        rate, i, j = _fastest_pair(params, state["position"])
        if rate == 0:
            return "No body acts on another: check the initial state, the field and the masses."
        return (
            f"The force between bodies {i} and {j} changes fastest: it requires steps below {2 / np.sqrt(rate):.2g}, "
            f"but dt is {self.dt:.2g}. Lower dt, or increase the softening."
        )


def check_params(params: Arrays) -> None:
    """Raise InputError unless softenings are so large that this precision has their 5th power."""
    softening = params["softening"]
    least = 1e-7 if softening.dtype == np.float32 else 1e-60
    if not (softening >= least).all():
        source, remedy = "charges: softening", "Give a length that is small compared with the distances between bodies."
        raise InputError(source, f"at least {least:g} in this precision", f"{softening.min():g}", remedy)


def _fastest_pair(params: Arrays, position: Array) -> tuple[float, int, int]:
    """Find the pair whose force changes most with distance: the rate per reduced mass [1/s^2], and the two bodies."""
    charge, mass, softening = params["charge"], params["mass"], params["softening"]
    found = (0.0, 0, 0)
    for i in range(len(position) - 1):
        d = position[i + 1 :] - position[i]
        strength = abs(params["coupling"] * charge[i] * charge[i + 1 :]) * (1 / mass[i] + 1 / mass[i + 1 :])
        rates = strength / ((d * d).sum(axis=1) + softening**2) ** 1.5
        j = int(rates.argmax())
        found = max(found, (float(rates[j]), i, i + 1 + j))
    return found
