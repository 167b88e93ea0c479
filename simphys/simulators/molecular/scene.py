"""A scene of molecular dynamics: the arrays and the model made of its sections, and their checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from simphys.scenefile.model_sections import fill_record, scene_of
from simphys.scenefile.section import Fields, Problem
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import check_rows
from simphys.simulator import Array
from simphys.simulator.neighbours import count_most, find_nearest, require_room

from .lattice import BASES, draw_velocities
from .model import Molecular, Params
from .sections import (
    AnglesSection,
    BondsSection,
    ChargesSection,
    GeometrySection,
    HeatBathSection,
    MaterialSection,
    MolecularSimulator,
    StateSection,
    list_atoms,
)
from .topology import find_angles, find_lengths, link, number_molecules, unwrap

ROOM = 1.6
"""Room in lists of neighbours, in the largest number at the start."""
LEAST_ROOM = 24
NEAREST = 0.7
"""Least distance of two atoms at the start, in sigma: at 0.7, Lennard-Jones' energy is 250 epsilon."""


@scene_of(Molecular, bonds="bonds.atoms", angles="angles.atoms")
class MolecularConfig(Config):
    """A scene of molecular dynamics."""

    SIZES = ((("geometry", "cells"), 2000),)

    simulator: MolecularSimulator
    geometry: GeometrySection
    material: MaterialSection = MaterialSection()
    bonds: BondsSection | None = None
    angles: AnglesSection | None = None
    charges: ChargesSection | None = None
    heat_bath: HeatBathSection | None = None
    state: StateSection = StateSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        geometry, simulator, material = map(sections.get, ("geometry", "simulator", "material"))
        if geometry is None:
            return
        wrong = list(_check_geometry(geometry))
        yield from wrong
        if wrong:
            return
        position, box = geometry.place_atoms()
        yield from _check_places(geometry, position, box)
        if simulator is not None:
            yield from _check_cutoff(simulator, box)
        for name, count in (("bonds", 2), ("angles", 3)):
            wrong += _check_links(name, sections.get(name), count, position, box)
        for name, entry in (("charges", "charge"), ("material", "mass")):
            given = getattr(sections.get(name), entry, None)
            if isinstance(given, list) and len(position) % len(given):
                constraint = f"a list that is repeated over {len(position)} atoms must have a divisor of values"
                remedy = "Give one for each atom, or for each of a cell."
                wrong.append(Problem((name, entry), constraint, len(given), remedy))
        yield from wrong
        if material is not None and len(position) > 1 and not wrong:
            links = link(list_atoms(sections.get("bonds"), 2), list_atoms(sections.get("angles"), 3))
            exclude = len(links) and not getattr(sections.get("bonds"), "beads", False)
            distance, i, j = find_nearest(position, box, number_molecules(links, len(position)) if exclude else None)
            if distance < NEAREST * material.sigma:
                constraint = f"atoms {i} and {j} must be at least {NEAREST * material.sigma:.3g} apart, 0.7 of sigma"
                remedy = "Take a lower density or a smaller sigma." if geometry.lattice else "Move one of them."
                key = ("geometry", "position" if geometry.lattice is None else "density")
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
        return Molecular(
            atoms=len(position),
            box=box,
            dt=self.time.dt,
            cutoff=chosen.cutoff,
            switch_on=0.9 * chosen.cutoff if chosen.switch_on is None else chosen.switch_on,
            skin=skin,
            neighbours=room,
            potential=chosen.potential,
            heat_bath=bath is not None,
            seed=0 if bath is None else bath.seed,
            bins=chosen.bins,
            bonds=list_atoms(self.bonds, 2),
            angles=list_atoms(self.angles, 3),
            beads=self.bonds is not None and self.bonds.beads,
            coulomb=0.0 if charges is None else charges.constant,
            damping=0.0 if charges is None else charges.damping,
        )

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        super().require_stable(model, params, state)
        require_room(model, state.position.data, ROOM, "an atom")


def _check_geometry(geometry: GeometrySection) -> Iterator[Problem]:
    key = ("geometry",)
    given = [name for name in ("lattice", "cells", "density", "position", "box") if getattr(geometry, name) is not None]
    if given not in (["lattice", "cells", "density"], ["position", "box"]):
        constraint = "takes either lattice, cells and density, or position and box"
        yield Problem(key, constraint, ", ".join(given) or "neither", "Give one of these.")
        return
    if geometry.lattice is not None and geometry.cells is not None:
        dim = len(BASES[geometry.lattice][0])
        if len(geometry.cells) != dim:
            constraint = f"a {geometry.lattice} lattice has {dim} axes"
            yield Problem((*key, "cells"), constraint, geometry.cells, f"Give {dim}.")
        return
    assert geometry.position is not None and geometry.box is not None, "given"
    yield from check_rows((*key, "position"), geometry.position, len(geometry.box), "length of the box")


def _check_links(
    name: str, section: BondsSection | AnglesSection | None, count: int, position: Array, box: tuple[float, ...]
) -> Iterator[Problem]:
    """Check atoms, lengths of lists, and that molecules are open: a bond around the box would be cut."""
    if section is None:
        return
    atoms = list_atoms(section, count)
    for row, each in enumerate(section.atoms):
        if max(each) >= len(position) or len(set(each)) < count:
            constraint = f"must be {count} different atoms, from 0 to {len(position) - 1}"
            yield Problem((name, "atoms", row), constraint, each, "Correct it.")
            return
    pairs = link(atoms, atoms[:0]) if count == 2 else link(atoms[:0], atoms)
    lengths = find_lengths(unwrap(position, pairs, box), pairs)
    if lengths.max() > 0.5 * min(box):
        pair = pairs[lengths.argmax()].tolist()
        constraint = f"atoms must be nearer than half the box, {0.5 * min(box):.4g}, in molecules that end within it"
        found, remedy = f"{lengths.max():.4g} from {pair[0]} to {pair[1]}", "Take a larger box, or fewer links."
        yield Problem((name, "atoms"), constraint, found, remedy)


def _check_places(geometry: GeometrySection, position: Array, box: tuple[float, ...]) -> Iterator[Problem]:
    outside = np.argwhere((position < 0) & np.isfinite(box) | (position > box))
    if geometry.position is not None and len(outside):
        atom, axis = (int(number) for number in outside[0])
        constraint = f"must lie in the box, from 0 to {box[axis]:g}"
        key = ("geometry", "position", atom, axis)
        remedy = f"Move atom {atom} by a length of the box, or open the axis."
        yield Problem(key, constraint, float(position[atom, axis]), remedy)


def _check_cutoff(simulator: MolecularSimulator, box: tuple[float, ...]) -> Iterator[Problem]:
    key = ("simulator", "cutoff")
    if min(box) < 2 * simulator.cutoff:
        constraint = (
            f"the box must be at least two cut-offs long, {2 * simulator.cutoff:g}; its least is {min(box):.4g}"
        )
        yield Problem(key, constraint, simulator.cutoff, f"Take a cut-off of {0.499 * min(box):.3g}, or more cells.")
    if simulator.switch_on is not None and simulator.switch_on >= simulator.cutoff:
        constraint, remedy = f"must be below the cut-off, {simulator.cutoff:g}", "Take 0.9 of it."
        yield Problem(("simulator", "switch_on"), constraint, simulator.switch_on, remedy)
