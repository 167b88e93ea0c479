"""The sections of a scene file that describe molecular dynamics."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import Count, Index, NonNegative, Positive, Section, Simulator
from simphys.simulator import Array

from .lattice import fill

Vector = Annotated[list[float], Field(min_length=2, max_length=3)]
Angle = Annotated[float, Field(gt=0, lt=math.pi)]


class MolecularSimulator(Simulator):
    """Options of the simulator.

    potential: that of a pair. cutoff [m]: distance from which on pairs do not interact; from switch_on [m] on the
    potential is reduced, to vanish there smoothly, by default 0.9 of the cut-off. skin [m]: by which lists of
    neighbours reach further, by default 0.12 of the cut-off. neighbours: room in a list, by default 1.6 times what
    the start has. bins: of the radial distribution function; 0 for no averages.
    """

    name: Literal["molecular"]
    potential: Literal["lennard_jones", "morse"] = "lennard_jones"
    cutoff: Positive
    switch_on: Positive | None = None
    skin: NonNegative | None = None
    neighbours: Count | None = None
    bins: Index = 0


class GeometrySection(Section):
    """Start positions: a lattice of `cells` along each axis with a number density [1/m^2 or 1/m^3], which makes the
    box; or `position` [m] of each atom in a `box` [m].

    open: axes along which the box is open rather than periodic, as "x", "y" or "z".
    """

    lattice: Literal["square", "cubic", "fcc", "rocksalt"] | None = None
    cells: Annotated[list[Count], Field(min_length=2, max_length=3)] | None = None
    density: Positive | None = None
    position: Annotated[list[Vector], Field(min_length=1)] | None = None
    box: Annotated[list[Positive], Field(min_length=2, max_length=3)] | None = None
    open: list[Literal["x", "y", "z"]] = []

    def place_atoms(self) -> tuple[Array, tuple[float, ...]]:
        """Return positions [n, dim] and the lengths of the box, inf for open axes."""
        if self.position is None:
            assert self.lattice and self.cells and self.density, "checked"
            position, lengths = fill(self.lattice, self.cells, self.density)
        else:
            assert self.box, "checked"
            position, lengths = np.array(self.position, dtype=float), np.array(self.box)
        opened = [axis in self.open for axis in "xyz"]
        return position, tuple([math.inf if o else float(x) for o, x in zip(opened, lengths, strict=False)])


class MaterialSection(Section):
    """The atoms: mass [kg], one number, or a list that is repeated over all of them; epsilon [J] depth of a pair's
    potential, sigma [m] its distance of zero energy, and steepness [1/m] of Morse's potential."""

    mass: Positive | Annotated[list[Positive], Field(min_length=1)] = 1.0
    epsilon: Positive = 1.0
    sigma: Positive = 1.0
    steepness: Positive = 5.0


class BondsSection(Section):
    """Harmonic bonds: atoms of each, stiffness [N/m], and rest_length [m], by default the length at the start.

    Each may be one number, or a list. beads: true if atoms of one molecule repel each other as those of others do.
    """

    atoms: Annotated[list[Annotated[list[Index], Field(min_length=2, max_length=2)]], Field(min_length=1)]
    stiffness: Positive | list[Positive]
    rest_length: Positive | list[Positive] | None = None
    beads: bool = False


class AnglesSection(Section):
    """Harmonic angles: atoms of each, the second in the middle, stiffness [J/rad^2], and rest_angle [rad], by default
    the angle at the start. Each may be one number, or a list."""

    atoms: Annotated[list[Annotated[list[Index], Field(min_length=3, max_length=3)]], Field(min_length=1)]
    stiffness: Positive | list[Positive]
    rest_angle: Angle | list[Angle] | None = None


class ChargesSection(Section):
    """Charges: charge [C] of each atom, a list that is repeated over all atoms; Coulomb's constant [N m^2/C^2], by
    default in SI units; damping [1/m] of forces, so that they are small at the cut-off: 2 to 3 over it."""

    charge: Annotated[list[float], Field(min_length=1)]
    constant: Positive = 8.9875517862e9
    damping: NonNegative


class HeatBathSection(Section):
    """Friction [1/s] and noise of a heat bath at a temperature k_B T [J]; seed of the noise."""

    friction: Positive
    temperature: Positive
    seed: Index = 0


class StateSection(Section):
    """Velocities: drawn from a temperature k_B T [J] with a seed, without momentum. Averages begin after
    `equilibration` [s]."""

    temperature: NonNegative = 0.0
    seed: Index = 0
    equilibration: NonNegative = 0.0


def list_atoms(section: BondsSection | AnglesSection | None, count: int) -> Array:
    """List the atoms of bonds or angles, [m, count]."""
    return np.array([] if section is None else section.atoms, np.int32).reshape(-1, count)
