"""A scene of molecular dynamics: its sections, their checks, and the arrays and the model made of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.section import Count, Fields, Index, Length, NonNegative, Positive, Problem, Section, Simulator
from simphys.scenefile.sections import Config
from simphys.simulator import Array
from simphys.simulator.neighbours import count_most, find_nearest, require_room

from .lattice import BASES, draw_velocities, fill
from .model import Molecular, Params
from .topology import find_angles, find_lengths, link, number_molecules, unwrap

Vector = Annotated[list[float], Field(min_length=2, max_length=3), Length("dim")]
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
    cells: Annotated[list[Count], Field(min_length=2, max_length=3), Length("dim")] | None = None
    density: Positive | None = None
    position: Annotated[list[Vector], Field(min_length=1)] | None = None
    box: Annotated[list[Positive], Field(min_length=2, max_length=3)] | None = None
    open: list[Literal["x", "y", "z"]] = []

    @property
    def dim(self) -> int | None:
        """Number of axes; None unless atoms are placed in one way."""
        given = {name for name in ("lattice", "cells", "density", "position", "box") if getattr(self, name) is not None}
        if given == {"lattice", "cells", "density"}:
            return len(BASES[str(self.lattice)][0])
        return len(self.box or ()) if given == {"position", "box"} else None

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


ROOM = 1.6
"""Room in lists of neighbours, in the largest number at the start."""
LEAST_ROOM = 24
NEAREST = 0.7
"""Least distance of two atoms at the start, in sigma: at 0.7, Lennard-Jones' energy is 250 epsilon."""


@scene_of(Molecular, bonds="bonds.atoms", angles="angles.atoms")
class MolecularConfig(Config):
    """A scene of molecular dynamics."""

    SIZES = ((("geometry", "cells"), 2000),)
    KEYS = {"bonds": ("bonds", "atoms"), "angles": ("angles", "atoms")}

    simulator: MolecularSimulator
    geometry: GeometrySection
    material: MaterialSection = MaterialSection()
    bonds: BondsSection | None = None
    angles: AnglesSection | None = None
    charges: ChargesSection | None = None
    heat_bath: HeatBathSection | None = None
    state: StateSection = StateSection()

    @classmethod
    def find_sizes(cls, sections: Mapping[str, Any]) -> dict[str, int]:
        dim = getattr(sections.get("geometry"), "dim", None)
        return {} if dim is None else {"dim": dim}

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        geometry = sections.get("geometry")
        if geometry is not None and geometry.dim is None:
            given = [name for name, value in geometry if value is not None and name != "open"]
            constraint = "takes either lattice, cells and density, or position and box"
            yield Problem(("geometry",), constraint, ", ".join(given) or "neither", "Give one of these.")

    def find_problems_with(self, model: Molecular) -> Iterator[Problem]:
        position, _ = self.geometry.place_atoms()
        yield from _check_places(self.geometry, position, model.box)
        wrong = _check_links("bonds", link(model.bonds, model.angles[:0]), position, model.box)
        wrong += _check_links("angles", link(model.bonds[:0], model.angles), position, model.box)
        charge = None if self.charges is None else self.charges.charge
        for key, given in ((("charges", "charge"), charge), (("material", "mass"), self.material.mass)):
            if isinstance(given, list) and len(position) % len(given):
                constraint = f"a list that is repeated over {len(position)} atoms must have a divisor of values"
                remedy = "Give one for each atom, or for each of a cell."
                wrong.append(Problem(key, constraint, len(given), remedy))
        yield from wrong or self._check_nearest(model, position)

    def _check_nearest(self, model: Molecular, position: Array) -> Iterator[Problem]:
        """Check that atoms that repel each other start apart."""
        if len(position) == 1:
            return
        links, least = link(model.bonds, model.angles), NEAREST * self.material.sigma
        exclude = len(links) and not model.beads
        distance, i, j = find_nearest(position, model.box, number_molecules(links, len(position)) if exclude else None)
        if distance < least:
            is_lattice = self.geometry.lattice is not None
            constraint = f"atoms {i} and {j} must be at least {least:.3g} apart, 0.7 of sigma"
            remedy = "Take a lower density or a smaller sigma." if is_lattice else "Move one of them."
            key = ("geometry", "density" if is_lattice else "position")
            yield Problem(key, constraint, f"{distance:.3g}", remedy)

    def build_fields(self) -> Fields:
        bins = self.simulator.bins
        bonds, angles = list_atoms(self.bonds, 2), list_atoms(self.angles, 3)
        position, box = self.geometry.place_atoms()
        position = unwrap(position, link(bonds, angles), box)
        n, mass = len(position), np.resize(np.array(self.material.mass), len(position))
        params = {
            "friction": np.array(1.0),  # for scenes without a heat bath, bonds or angles, up to their stiffness
            "temperature": np.array(1.0),
            "bond_stiffness": np.zeros(0),
            "angle_stiffness": np.zeros(0),
            "rest_length": find_lengths(position, bonds),
            "rest_angle": find_angles(position, angles),
            **fill_record(self, Params),
            "mass": mass,
            "charge": np.zeros(0) if self.charges is None else np.resize(np.array(self.charges.charge), n),
        }
        state = {
            "position": position,
            "velocity": draw_velocities(mass, len(box), self.state.temperature, self.state.seed),
            "elapsed": np.array(-self.state.equilibration),
            "thermo": np.zeros(3 if bins else 0),
            "rdf": np.zeros(bins),
            "displacement": np.zeros(position.shape if bins else 0),
            "msd": np.zeros(1 if bins else 0),
        }
        return Fields(params=params, state=state, nodes=n)

    def build_model(self) -> Molecular:
        chosen, bath, charges = self.simulator, self.heat_bath, self.charges
        position, box = self.geometry.place_atoms()
        skin = 0.12 * chosen.cutoff if chosen.skin is None else chosen.skin
        room = chosen.neighbours
        if room is None:
            most = count_most(position, box, chosen.cutoff + skin)
            room = min(max(LEAST_ROOM, math.ceil(ROOM * most)), max(len(position) - 1, 1))
        return fill_model(
            self,
            Molecular,
            atoms=len(position),
            box=box,
            switch_on=0.9 * chosen.cutoff if chosen.switch_on is None else chosen.switch_on,
            skin=skin,
            neighbours=room,
            heat_bath=bath is not None,
            seed=0 if bath is None else bath.seed,
            bonds=list_atoms(self.bonds, 2),
            angles=list_atoms(self.angles, 3),
            beads=self.bonds is not None and self.bonds.beads,
            coulomb=0.0 if charges is None else charges.constant,
            damping=0.0 if charges is None else charges.damping,
        )

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        super().require_stable(model, params, state)
        require_room(model, state.position.data, ROOM, "an atom")


def _check_links(name: str, pairs: Array, position: Array, box: tuple[float, ...]) -> list[Problem]:
    """Check that molecules are open: a bond around the box would be cut."""
    lengths = find_lengths(unwrap(position, pairs, box), pairs)
    if not len(lengths) or lengths.max() <= 0.5 * min(box):
        return []
    pair = pairs[lengths.argmax()].tolist()
    constraint = f"atoms must be nearer than half the box, {0.5 * min(box):.4g}, in molecules that end within it"
    found, remedy = f"{lengths.max():.4g} from {pair[0]} to {pair[1]}", "Take a larger box, or fewer links."
    return [Problem((name, "atoms"), constraint, found, remedy)]


def _check_places(geometry: GeometrySection, position: Array, box: tuple[float, ...]) -> Iterator[Problem]:
    outside = np.argwhere((position < 0) & np.isfinite(box) | (position > box))
    if geometry.position is not None and len(outside):
        atom, axis = (int(number) for number in outside[0])
        constraint = f"must lie in the box, from 0 to {box[axis]:g}"
        key = ("geometry", "position", atom, axis)
        remedy = f"Move atom {atom} by a length of the box, or open the axis."
        yield Problem(key, constraint, float(position[atom, axis]), remedy)
