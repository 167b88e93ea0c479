"""Model, parameters and state of molecular dynamics."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays, Bodies, Model, Record, declare
from simphys.simulator.declare import make_empty
from simphys.simulator.memo import cast
from simphys.simulator.model_checks import (
    read_indices,
    require_box,
    require_choices,
    require_counts,
    require_not_negative_fields,
    require_positive_fields,
)
from simphys.simulator.neighbours import advise_room
from simphys.simulator.physical import require_positive
from simphys.simulator.space import InBox

from .topology import link, number_molecules

POTENTIALS = ("lennard_jones", "morse")


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    mass: Tensor = declare("atoms", "kg", sign="positive", section="material")
    """Mass of each atom."""
    epsilon: Tensor = declare("", "J", sign="not_negative", section="material")
    """Depth of the potential of a pair."""
    sigma: Tensor = declare("", "m", sign="positive", section="material")
    """Distance at which the potential is zero."""
    steepness: Tensor = declare("", "1/m", sign="not_negative", section="material")
    """Rate at which Morse's potential falls off; Lennard-Jones' has none."""
    friction: Tensor = declare("", "1/s", sign="not_negative", section="heat_bath")
    """Friction of the heat bath, positive if there is one."""
    temperature: Tensor = declare("", "J", sign="not_negative", section="heat_bath")
    """Temperature of the heat bath as an energy, k_B T, positive if there is one."""
    bond_stiffness: Tensor = declare(
        "bonds", "N/m", sign="not_negative", section="bonds.stiffness", default_factory=make_empty
    )
    """Stiffness of each bond."""
    rest_length: Tensor = declare("bonds", "m", sign="not_negative", section="bonds", default_factory=make_empty)
    """Length of each bond without force."""
    angle_stiffness: Tensor = declare(
        "angles", "J/rad^2", sign="not_negative", section="angles.stiffness", default_factory=make_empty
    )
    """Stiffness of each angle."""
    rest_angle: Tensor = declare("angles", "rad", section="angles", default_factory=make_empty)
    """Angle without force, above 0 and below pi."""
    charge: Tensor = declare("atoms", "C", only_if="coulomb", default_factory=make_empty)
    """Charge of each atom."""


@dataclass(frozen=True)
class State(Record):
    """Motion of the atoms, and averages since t = 0."""

    position: Tensor = declare("atoms, dim", "m")
    """Position; that of an atom that leaves a periodic box goes on outside of it."""
    velocity: Tensor = declare("atoms, dim", "m/s")
    """Velocity."""
    elapsed: Tensor = declare("", "s")
    """Time over which averages were taken; negative before that."""
    thermo: Tensor = declare("3", "J, Pa, J", only_if="bins")
    """Average temperature k_B T, pressure (in the plane [N/m]) and potential energy of an atom."""
    rdf: Tensor = declare("bins", "1")
    """Average radial distribution function in each bin."""
    displacement: Tensor = declare("atoms, dim", "m", only_if="bins", default_factory=make_empty)
    """Way of each atom since t = 0, across the sides of the box."""
    msd: Tensor = declare("1", "m^2", only_if="bins", default_factory=make_empty)
    """Mean square displacement since t = 0."""


def _column(name: str, number: int) -> Any:
    """Make a property: a column of an array of the model."""
    return property(lambda self: getattr(self, name)[:, number])


@dataclass(frozen=True)
class Molecular(InBox, Model):
    """Atoms with forces between pairs within a cut-off, bonds and angles: all parts that carry no gradient."""

    atoms: int
    """Number of atoms, n."""
    box: tuple[float, ...]
    """Length [m] of each axis of the box, which is periodic, or inf for an open axis: dim = 2 or 3 of them."""
    dt: float
    """Time step [s]."""
    cutoff: float
    """Distance [m] from which on pairs do not interact."""
    switch_on: float
    """Distance [m] from which on the potential is reduced, to vanish smoothly at the cut-off."""
    skin: float
    """Distance [m] by which lists of neighbours reach beyond the cut-off."""
    neighbours: int = 200
    """Largest number of neighbours of an atom, within cut-off and skin."""
    potential: str = "lennard_jones"
    """Potential of a pair: lennard_jones or morse."""
    heat_bath: bool = False
    """True for friction and noise of a heat bath."""
    seed: int = 0
    """Seed of this noise."""
    bins: int = 0
    """Bins of the radial distribution function, up to the cut-off; 0 for no averages at all."""
    bonds: Array = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    """Atoms (a, b) of each bond, [bonds, 2]."""
    angles: Array = field(default_factory=lambda: np.zeros((0, 3), np.int32))
    """Atoms (a, b, c) of each angle, which is that at b, [angles, 3]."""
    beads: bool = False
    """True if atoms of one molecule interact as pairs too, like beads of a chain; False for bonds and angles alone."""

    coulomb: float = 0.0
    """Coulomb's constant [N m^2/C^2]; 0 without charges."""
    damping: float = 0.0
    """Rate [1/m] at which Coulomb forces are damped, so that they are small at the cut-off."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_box(self)
        require_counts(self, atoms=1, neighbours=1, seed=0, bins=0)
        require_positive_fields(self, "cutoff")
        require_not_negative_fields(self, "switch_on", "skin", "coulomb", "damping")
        for name, width in (("bonds", 2), ("angles", 3)):
            atoms = read_indices(f"Molecular.{name}", getattr(self, name), width=width, count=self.atoms, noun="atom")
            object.__setattr__(self, name, atoms)
        require_choices(self, potential=POTENTIALS)
        if not 0 < self.switch_on < self.cutoff:
            constraint = f"between 0 and the cut-off, {self.cutoff:g}"
            raise InputError("Molecular.switch_on", constraint, f"{self.switch_on:g}", "Take 0.9 of the cut-off.")
        if min(self.box) < 2 * self.cutoff:
            least = f"{2 * self.cutoff:g}; its least is {min(self.box):.4g}"
            remedy = f"Take a cut-off of {0.499 * min(self.box):.3g}, or a larger box."
            raise InputError("Molecular.cutoff", f"a box at least two cut-offs long, {least}", self.cutoff, remedy)

    @property
    def morse(self) -> float:
        """1 for Morse's potential, else 0."""
        return float(self.potential == "morse")

    @property
    def inverse_volume(self) -> float:
        """One over the volume [1/m^dim]; 0 for an open box."""
        return 1 / math.prod(self.box)

    @cached_property
    def centres(self) -> Array:
        """Centres [m] of the bins; the last bin ends at the cut-off."""
        width = self.cutoff / (self.bins + 1)
        found: Array = width * (0.5 + np.arange(self.bins))
        return found

    @property
    def numbers(self) -> Array:
        """Numbers of the atoms, as real numbers [n]."""
        return cast(self, "numbers", np.arange(self.atoms))

    @property
    def histogram(self) -> tuple[Array, Array, float]:
        """Centres [m] of the bins, weights of a pair in them, and one over their width [1/m]."""
        width = self.cutoff / (self.bins + 1)
        shells = width * (4 * np.pi * self.centres**2 if self.dim == 3 else 2 * np.pi * self.centres)
        volume = 1 / self.inverse_volume if self.inverse_volume else 1.0
        weights = volume / (self.atoms**2 * shells)
        return cast(self, "centres", self.centres), cast(self, "weights", weights), 1 / width

    @property
    def molecule(self) -> Array | float:
        """Number of each atom's molecule, as real numbers [n], whose atoms do not interact as pairs; 0 for none."""
        alone = self.beads or not len(self.bonds) + len(self.angles)
        return 0.0 if alone else cast(self, "molecule", self._molecules)

    @cached_property
    def _molecules(self) -> Array:
        return number_molecules(link(self.bonds, self.angles), self.atoms)

    bond_a, bond_b = (_column("bonds", end) for end in range(2))
    angle_a, angle_b, angle_c = (_column("angles", end) for end in range(3))

    def describe_bodies(self, params: Arrays) -> Bodies:
        return Bodies(pinned=np.zeros(self.atoms, dtype=bool), own=self.atoms, links=self.bonds, box=self.box)

    def check_start(self, params: Arrays, state: Arrays) -> None:
        """Raise UnphysicalValue for a heat bath without friction or temperature, too, whose noise has no derivative."""
        super().check_start(params, state)
        if self.heat_bath:
            instead = "Give a positive one, or heat_bath = False"
            require_positive("molecular", params, "friction", "temperature", instead=instead)

    def advice(self, params: Arrays, state: Arrays) -> str:
        return advise_room(self, state["position"], "An atom")
