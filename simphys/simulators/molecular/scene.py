"""Sections of a scene file for molecular dynamics, and the arrays that they define."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import Count, Fields, Index, NonNegative, Positive, Problem, Section, Simulator

from .lattice import BASES, draw_velocities, fill
from .model import Molecular, Params
from .stability import count_most, find_nearest
from .topology import find_angles, find_lengths, link, number_molecules, unwrap

Vector = Annotated[list[float], Field(min_length=2, max_length=3)]
Angle = Annotated[float, Field(gt=0, lt=math.pi)]
ROOM = 1.6
"""Room in lists of neighbours, in the largest number at the start."""
LEAST_ROOM = 24
NEAREST = 0.7
"""Least distance of two atoms at the start, in sigma: at 0.7, Lennard-Jones' energy is 250 epsilon."""


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


def place_atoms(geometry: GeometrySection) -> tuple[np.ndarray, tuple[float, ...]]:
    """Return positions [n, dim] and the lengths of the box, inf for open axes."""
    if geometry.position is None:
        assert geometry.lattice and geometry.cells and geometry.density, "checked"
        position, lengths = fill(geometry.lattice, geometry.cells, geometry.density)
    else:
        assert geometry.box, "checked"
        position, lengths = np.array(geometry.position, dtype=float), np.array(geometry.box)
    opened = [axis in geometry.open for axis in "xyz"]
    return position, tuple([math.inf if o else float(x) for o, x in zip(opened, lengths, strict=False)])


def list_atoms(section: BondsSection | AnglesSection | None, count: int) -> np.ndarray:
    """Return the atoms of bonds or angles, [m, count]."""
    return np.array([] if section is None else section.atoms, np.int32).reshape(-1, count)


def expand(given: float | list[float] | None, default: np.ndarray) -> np.ndarray:
    """Expand a number, or a list, to the length of what stands without one."""
    return default if given is None else np.full(len(default), given)


def build_fields(config: Any) -> Fields:
    """Expand every parameter field and state component to full length."""
    material, state, bath = config.material, config.state, config.heat_bath
    position, box = place_atoms(config.geometry)
    mass = np.resize(np.array(material.mass), len(position))
    params = {"mass": mass} | {name: np.array(getattr(material, name)) for name in ("epsilon", "sigma", "steepness")}
    params["friction"] = np.array(1.0 if bath is None else bath.friction)
    params["temperature"] = np.array(1.0 if bath is None else bath.temperature)
    bonds, angles = list_atoms(config.bonds, 2), list_atoms(config.angles, 3)
    position = unwrap(position, link(bonds, angles), box)
    lengths, turns = find_lengths(position, bonds), find_angles(position, angles)
    params["bond_stiffness"] = expand(config.bonds and config.bonds.stiffness, np.zeros(len(bonds)))
    params["rest_length"] = expand(config.bonds and config.bonds.rest_length, lengths)
    params["angle_stiffness"] = expand(config.angles and config.angles.stiffness, np.zeros(len(angles)))
    params["rest_angle"] = expand(config.angles and config.angles.rest_angle, turns)
    charges = config.charges
    params["charge"] = np.zeros(0) if charges is None else np.resize(np.array(charges.charge), len(position))
    bins = config.simulator.bins
    fields = {
        "position": position,
        "velocity": draw_velocities(mass, len(box), state.temperature, state.seed),
        "elapsed": np.array(-state.equilibration),
        "thermo": np.zeros(3 if bins else 0),
        "rdf": np.zeros(bins),
        "displacement": np.zeros(position.shape if bins else 0),
        "msd": np.zeros(1 if bins else 0),
    }
    return Fields(params={name: params[name] for name in Params.names()}, state=fields, nodes=len(position))


def build_model(config: Any) -> Molecular:
    """Build the model of a validated scene."""
    chosen, bath = config.simulator, config.heat_bath
    position, box = place_atoms(config.geometry)
    skin = 0.12 * chosen.cutoff if chosen.skin is None else chosen.skin
    room = chosen.neighbours
    if room is None:
        most = count_most(position, box, chosen.cutoff + skin)
        room = min(max(LEAST_ROOM, math.ceil(ROOM * most)), max(len(position) - 1, 1))
    return Molecular(
        atoms=len(position),
        box=box,
        dt=config.time.dt,
        cutoff=chosen.cutoff,
        switch_on=0.9 * chosen.cutoff if chosen.switch_on is None else chosen.switch_on,
        skin=skin,
        neighbours=room,
        potential=chosen.potential,
        heat_bath=bath is not None,
        seed=0 if bath is None else bath.seed,
        bins=chosen.bins,
        bonds=list_atoms(config.bonds, 2),
        angles=list_atoms(config.angles, 3),
        beads=config.bonds is not None and config.bonds.beads,
        coulomb=0.0 if config.charges is None else config.charges.constant,
        damping=0.0 if config.charges is None else config.charges.damping,
    )


def find_problems(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find all problems. A section that is itself invalid is absent, and checks that depend on it are skipped."""
    geometry, simulator, material = (sections.get(name) for name in ("geometry", "simulator", "material"))
    if geometry is None:
        return
    wrong = list(_check_geometry(geometry))
    yield from wrong
    if wrong:
        return
    position, box = place_atoms(geometry)
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
            wrong.append(Problem(key=(name, entry), constraint=constraint, found=len(given), remedy=remedy))
    yield from wrong
    if material is not None and len(position) > 1 and not wrong:
        bonds, angles = (list_atoms(sections.get(name), count) for name, count in (("bonds", 2), ("angles", 3)))
        bonded, links = sections.get("bonds"), link(bonds, angles)
        exclude = len(links) and not (bonded is not None and bonded.beads)
        distance, i, j = find_nearest(position, box, number_molecules(links, len(position)) if exclude else None)
        if distance < NEAREST * material.sigma:
            constraint = f"atoms {i} and {j} must be at least {NEAREST * material.sigma:.3g} m apart, 0.7 of sigma"
            remedy = "Take a lower density or a smaller sigma." if geometry.lattice else "Move one of them."
            key = ("geometry", "position" if geometry.lattice is None else "density")
            yield Problem(key=key, constraint=constraint, found=f"{distance:.3g} m", remedy=remedy)


def _check_geometry(geometry: GeometrySection) -> Iterator[Problem]:
    key = ("geometry",)
    given = [name for name in ("lattice", "cells", "density", "position", "box") if getattr(geometry, name) is not None]
    if given not in (["lattice", "cells", "density"], ["position", "box"]):
        constraint = "takes either lattice, cells and density, or position and box"
        yield Problem(key=key, constraint=constraint, found=", ".join(given) or "neither", remedy="Give one of these.")
        return
    if geometry.lattice is not None and geometry.cells is not None:
        dim = len(BASES[geometry.lattice][0])
        if len(geometry.cells) != dim:
            constraint = f"a {geometry.lattice} lattice has {dim} axes"
            yield Problem(key=(*key, "cells"), constraint=constraint, found=geometry.cells, remedy=f"Give {dim}.")
        return
    assert geometry.position is not None and geometry.box is not None, "given"
    for atom, row in enumerate(geometry.position):
        if len(row) != len(geometry.box):
            constraint = f"must have {len(geometry.box)} components, one for each length of the box"
            yield Problem(key=(*key, "position", atom), constraint=constraint, found=row, remedy="Correct it.")


def _check_links(
    name: str, section: BondsSection | AnglesSection | None, count: int, position: np.ndarray, box: tuple[float, ...]
) -> Iterator[Problem]:
    """Check atoms, lengths of lists, and that molecules are open: a bond around the box would be cut."""
    if section is None:
        return
    atoms = list_atoms(section, count)
    for row, each in enumerate(section.atoms):
        if max(each) >= len(position) or len(set(each)) < count:
            constraint = f"must be {count} different atoms, from 0 to {len(position) - 1}"
            yield Problem(key=(name, "atoms", row), constraint=constraint, found=each, remedy="Correct it.")
            return
    for key, given in section:
        if key != "atoms" and isinstance(given, list) and len(given) != len(atoms):
            constraint = f"must have {len(atoms)} values, one for each of the {name}"
            yield Problem(key=(name, key), constraint=constraint, found=len(given), remedy="Give one, or so many.")
    pairs = link(atoms, atoms[:0]) if count == 2 else link(atoms[:0], atoms)
    lengths = find_lengths(unwrap(position, pairs, box), pairs)
    if lengths.max() > 0.5 * min(box):
        pair = pairs[lengths.argmax()].tolist()
        constraint = f"atoms must be nearer than half the box, {0.5 * min(box):.4g} m, in molecules that end within it"
        found, remedy = f"{lengths.max():.4g} m from {pair[0]} to {pair[1]}", "Take a larger box, or fewer links."
        yield Problem(key=(name, "atoms"), constraint=constraint, found=found, remedy=remedy)


def _check_places(geometry: GeometrySection, position: np.ndarray, box: tuple[float, ...]) -> Iterator[Problem]:
    outside = np.argwhere((position < 0) & np.isfinite(box) | (position > box))
    if geometry.position is not None and len(outside):
        atom, axis = (int(number) for number in outside[0])
        constraint = f"must lie in the box, from 0 to {box[axis]:g} m"
        key = ("geometry", "position", atom, axis)
        remedy = f"Move atom {atom} by a length of the box, or open the axis."
        yield Problem(key=key, constraint=constraint, found=float(position[atom, axis]), remedy=remedy)


def _check_cutoff(simulator: MolecularSimulator, box: tuple[float, ...]) -> Iterator[Problem]:
    key = ("simulator", "cutoff")
    if min(box) < 2 * simulator.cutoff:
        constraint = (
            f"the box must be at least two cut-offs long, {2 * simulator.cutoff:g} m; its least is {min(box):.4g} m"
        )
        remedy = f"Take a cut-off of {0.499 * min(box):.3g} m, or more cells."
        yield Problem(key=key, constraint=constraint, found=simulator.cutoff, remedy=remedy)
    if simulator.switch_on is not None and simulator.switch_on >= simulator.cutoff:
        constraint, remedy = f"must be below the cut-off, {simulator.cutoff:g} m", "Take 0.9 of it."
        yield Problem(key=("simulator", "switch_on"), constraint=constraint, found=simulator.switch_on, remedy=remedy)
