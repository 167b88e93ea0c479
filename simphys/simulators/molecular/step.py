"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

import math
from typing import Any

from simphys.autograd import Tensor

from .averages import Follow, Measure, Spread, Tick, Travel
from .bonded import Angle, AngleForce, AngleSums, Bond, BondForce, BondSums
from .coulomb import ChargeForce, ChargeSums, SelfSums, find_shift
from .histogram import PairHistogram, SumAtoms
from .model import Molecular, Params, State
from .motion import Drift, Kick, Warm
from .potential import PairForce, PairSums


def find_force(model: Molecular, params: Params, x: Tensor) -> Tensor:
    """Add up the forces [n, dim] on atoms at x."""
    force = PairForce.apply(model, x, *list_pair_arguments(model, params))
    if len(model.bonds):
        f_a, f_b, _ = Bond.apply(model, x, params.bond_stiffness, params.rest_length)
        force = force + BondForce.apply(model, f_a, f_b)
    if len(model.angles):
        f_a, f_b, f_c, _ = Angle.apply(model, x, params.angle_stiffness, params.rest_angle)
        force = force + AngleForce.apply(model, f_a, f_b, f_c)
    if model.coulomb:
        slope, _ = find_shift(model.damping, model.cutoff)
        charges = params.charge, model.molecule, model.coulomb, model.damping
        force = force + ChargeForce.apply(model, x, *charges, slope)
    return force


def find_sums(model: Molecular, params: Params, x: Tensor) -> Tensor:
    """Add up potential energy and virial of each atom at x, [n, 2]."""
    sums = PairSums.apply(model, x, *list_pair_arguments(model, params))
    if len(model.bonds):
        *_, of_bonds = Bond.apply(model, x, params.bond_stiffness, params.rest_length)
        sums = sums + BondSums.apply(model, of_bonds)
    if len(model.angles):
        *_, of_angles = Angle.apply(model, x, params.angle_stiffness, params.rest_angle)
        sums = sums + AngleSums.apply(model, of_angles)
    if model.coulomb:
        shift = find_shift(model.damping, model.cutoff)
        charges = params.charge, model.molecule, model.coulomb, model.damping
        sums = sums + ChargeSums.apply(model, x, *charges, *shift)
        own = -model.coulomb * (model.damping / math.sqrt(math.pi) + 0.5 * shift.level)
        sums = sums + SelfSums.apply(model, params.charge, own)
    return sums


def list_pair_arguments(model: Molecular, params: Params) -> tuple[Any, ...]:
    """List what the sub-steps of the pair potential take after positions."""
    pair = params.epsilon, params.sigma, params.steepness, model.molecule
    return *pair, model.morse, model.switch_on**2, model.cutoff**2


def step(model: Molecular, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step: velocity Verlet, with a heat bath between two half drifts if there is one."""
    begin = x = state.position
    v, h, t = state.velocity, model.dt, state.elapsed
    v = Kick.apply(model, v, find_force(model, params, x), params.mass, h / 2)
    if model.heat_bath:
        x = Drift.apply(model, x, v, h / 2)
        bath = params.mass, params.friction, params.temperature, t, model.numbers, h, model.seed
        v = Warm.apply(model, v, *bath)
        x = Drift.apply(model, x, v, h / 2)
    else:
        x = Drift.apply(model, x, v, h)
    v = Kick.apply(model, v, find_force(model, params, x), params.mass, h / 2)

    weight, elapsed = Tick.apply(model, t, h)
    thermo, rdf, way, msd = state.thermo, state.rdf, state.displacement, state.msd
    if model.bins:
        sums = find_sums(model, params, x)
        measured = Measure.apply(model, v, params.mass, sums, model.atoms, model.inverse_volume)
        thermo = Follow.apply(model, thermo, measured, weight)
        now = SumAtoms.apply(model, PairHistogram.apply(model, x, *model.histogram))
        rdf = Follow.apply(model, rdf, now, weight)
        way = Travel.apply(model, way, x, begin, t, h)
        msd = Spread.apply(model, way, model.atoms)
    return State(x, v, elapsed, thermo, rdf, way, msd)
