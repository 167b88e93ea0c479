"""Molecular dynamics against closed forms, direct sums, conserved quantities and the statistics of a heat bath."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import no_grad, tensor
from simphys.autograd.errors import InputError
from simphys.rollout import rollout
from simphys.simulators.molecular import Molecular, Params, State
from simphys.simulators.molecular.averages import Measure
from simphys.simulators.molecular.histogram import PairHistogram, SumAtoms
from simphys.simulators.molecular.lattice import draw_velocities, fill
from simphys.simulators.molecular.potential import PairForce, PairSums
from simphys.simulators.molecular.step import list_pair_arguments

Array = np.ndarray[Any, Any]


def make(
    cells: int = 4, *, density: float = 0.85, temperature: float = 1.0, lattice: str = "fcc", **options: Any
) -> tuple[Molecular, Params, State]:
    """Make atoms of mass, depth and diameter 1 on a lattice."""
    dim = 2 if lattice == "square" else 3
    position, box = fill(lattice, [cells] * dim, density)
    n, bins = len(position), options.get("bins", 0)
    chosen = {"dt": 0.005, "cutoff": 2.5, "switch_on": 2.0, "skin": 0.3} | options
    model = Molecular(n, tuple(box.tolist()), **chosen)
    mass = np.ones(n)
    params = Params(tensor(mass), *[tensor(value) for value in (1.0, 1.0, 5.0, 1.0, temperature)])
    velocity = draw_velocities(mass, dim, temperature, 3)
    averages = [np.zeros(3), np.zeros(bins), np.zeros((n, dim)), np.zeros(1)] if bins else [np.zeros(0)] * 4
    return model, params, State(*[tensor(value) for value in (position, velocity, np.zeros(()), *averages)])


def total_energy(model: Molecular, params: Params, state: State) -> float:
    sums = PairSums.apply(model, state.position, *list_pair_arguments(model, params)).data
    return float(sums[:, 0].sum() + 0.5 * (params.mass.data[:, None] * state.velocity.data**2).sum())


def switch(model: Molecular, r: Array) -> Array:
    u = np.clip((r**2 - model.switch_on**2) / (model.cutoff**2 - model.switch_on**2), 0, 1)
    return np.asarray(1 - u**3 * (10 - 15 * u + 6 * u**2))


def potential(model: Molecular, r: Array) -> Array:
    a = np.exp(-5.0 * (r - 1)) if model.potential == "morse" else r**-6.0
    return 4 * (a * a - a) * switch(model, r)


def distances(model: Molecular, x: Array) -> tuple[Array, Array]:
    """Shortest differences of all pairs i < j, and their lengths."""
    i, j = np.triu_indices(len(x), 1)
    d = x[i] - x[j]
    d -= np.array(model.box) * np.round(d / np.array(model.box))
    return d, np.sqrt((d * d).sum(axis=1))


@pytest.mark.parametrize("name", ["lennard_jones", "morse"])
def test_energy_pressure_and_distribution_are_those_of_a_direct_sum(name: str) -> None:
    """All pairs in NumPy; the virial by differences of the potential."""
    model, params, state = make(potential=name, bins=20)
    x = state.position.data + np.random.default_rng(2).uniform(-0.1, 0.1, state.position.shape)
    position = tensor(x)
    sums = PairSums.apply(model, position, *list_pair_arguments(model, params))
    found = Measure.apply(model, state.velocity, params.mass, sums, model.atoms, model.inverse_volume).data
    _, r = distances(model, x)
    near = r[r < model.cutoff]
    h = 1e-5
    virial = -(near * (potential(model, near + h) - potential(model, near - h)) / (2 * h)).sum()
    kinetic = (state.velocity.data**2).sum()
    volume = math.prod(model.box)
    expected = (
        kinetic / (3 * model.atoms),
        (kinetic + virial) / (3 * volume),
        potential(model, near).sum() / model.atoms,
    )
    np.testing.assert_allclose(found, expected, rtol=1e-7)  # the error of the differences
    rdf = SumAtoms.apply(model, PairHistogram.apply(model, position, *model.histogram)).data
    u = np.abs(near[:, None] - model.centres) * (len(model.centres) + 1) / model.cutoff
    counted = (np.where(u < 0.5, 0.75 - u**2, 0.5 * np.clip(1.5 - u, 0, None) ** 2)).sum(axis=0)
    shells = 4 * np.pi * model.centres**2 * model.cutoff / (len(model.centres) + 1)
    np.testing.assert_allclose(rdf, 2 * counted * volume / (model.atoms**2 * shells), rtol=1e-10, atol=1e-12)


def test_the_force_is_minus_the_slope_of_the_energy() -> None:
    model, params, state = make()
    arguments = list_pair_arguments(model, params)
    position = tensor(state.position.data + 0.05 * np.sin(7 * state.position.data), requires_grad=True)
    PairSums.apply(model, position, *arguments)[:, 0].sum().backward()
    assert position.grad is not None
    force = PairForce.apply(model, position, *arguments).data
    np.testing.assert_allclose(force, -position.grad.data, rtol=1e-11, atol=1e-11)


def test_the_energy_of_a_crystal_is_its_lattice_sum() -> None:
    """14.45392 and 12.13188 for the face-centred cubic lattice (Kittel, Introduction to solid state physics)."""
    model, params, state = make(7, density=1.0, cutoff=5.5, switch_on=5.0, neighbours=900)
    sums = PairSums.apply(model, state.position, *list_pair_arguments(model, params)).data
    spacing = (4 / 1.0) ** (1 / 3)
    far = np.arange(-30, 31)
    corners = spacing * np.stack(np.meshgrid(far, far, far, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    sites = corners + spacing * np.array([[0, 0, 0], [0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    r = np.sqrt((sites.reshape(-1, 3) ** 2).sum(axis=1))
    limit = 30 * spacing
    r = r[(r > model.switch_on) & (r < limit)]
    rest = 2 * ((r**-12.0 - r**-6.0) * (1 - switch(model, r))).sum() - 8 * np.pi / 3 * limit**-3
    nearest = spacing / math.sqrt(2)
    expected = 2 * (12.13188 * nearest**-12 - 14.45392 * nearest**-6)
    np.testing.assert_allclose(sums[:, 0] + rest, expected, rtol=2e-6)


@pytest.mark.parametrize(("cutoff", "energy", "virial"), [(3.0, -16.790321304625856, -46.249), (4.0, -17.060, -47.869)])
def test_energy_and_virial_are_those_of_nist(cutoff: float, energy: float, virial: float) -> None:
    """Configuration 4 of the reference calculations for the Lennard-Jones fluid, with a potential that is truncated.

    NIST tells five digits; all digits of the first energy are those of FEASST, a program of NIST.
    """
    position = np.loadtxt(Path(__file__).parent / "nist_configuration_4.txt")
    model, params, _ = make(2, cutoff=cutoff, switch_on=cutoff * (1 - 1e-9), skin=0.0, neighbours=29)
    model = replace(model, atoms=len(position), box=(8.0, 8.0, 8.0))
    sums = PairSums.apply(model, tensor(position), *list_pair_arguments(model, params)).data.sum(axis=0)
    digits = 1e-12 if cutoff == 3.0 else 3e-5
    assert math.isclose(sums[0], energy, rel_tol=digits) and math.isclose(sums[1], virial, rel_tol=2e-5)


def test_the_drift_of_energy_is_of_second_order() -> None:
    """Halving the step divides the fluctuation of the energy by four."""
    model, params, state = make(temperature=1.4)
    spread = []
    with no_grad():
        for dt in (0.008, 0.004):
            fine = replace(model, dt=dt)
            states = rollout(fine, params, state, steps=round(0.8 / dt)).states
            rows = range(0, len(states.position.data), round(0.08 / dt))
            each = [State(*[tensor(getattr(states, name).data[row]) for name in State.names()]) for row in rows]
            spread.append(np.std([total_energy(fine, params, one) for one in each]))
    assert 3.3 < spread[0] / spread[1] < 4.7


def test_momentum_is_conserved_to_rounding() -> None:
    model, params, state = make(temperature=2.0)
    with no_grad():
        final = rollout(model, params, state, steps=200, keep="final").final
    assert np.abs(final.velocity.data.sum(axis=0)).max() < 1e-12 * np.abs(final.velocity.data).sum()


def test_free_atoms_spread_by_their_velocities() -> None:
    """Also across the sides of the box: the mean square displacement is that of straight ways since t = 0."""
    model, params, state = make(2, bins=1, neighbours=31, cutoff=1.6, switch_on=1.0, dt=0.1)
    late = state.replace(elapsed=tensor(-0.5))
    with no_grad():
        final = rollout(model, params.replace(epsilon=tensor(0.0)), late, steps=45, keep="final").final
    expected = 4.0**2 * (state.velocity.data**2).sum() / model.atoms
    np.testing.assert_allclose(final.msd.data, [expected], rtol=1e-12)
    np.testing.assert_allclose(final.displacement.data, 4.0 * state.velocity.data, rtol=1e-12, atol=1e-12)


def test_a_heat_bath_brings_its_temperature() -> None:
    """Also to atoms that begin at rest, within four standard errors of some 500 independent velocities."""
    model, params, state = make(
        12, lattice="square", density=0.6, temperature=1.0, bins=1, heat_bath=True, dt=0.01, neighbours=60
    )
    cold = state.replace(velocity=tensor(np.zeros(state.velocity.shape)), elapsed=tensor(-2.0))
    params = params.replace(friction=tensor(4.0), temperature=tensor(1.7))
    with no_grad():
        final = rollout(model, params, cold, steps=600, keep="final").final
    assert abs(final.thermo.data[0] / 1.7 - 1) < 0.06
    other = rollout(replace(model, seed=1), params, cold, steps=3, keep="final").final
    assert np.abs(other.velocity.data - rollout(model, params, cold, steps=3).final.velocity.data).max() > 0.1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"potential": "coulomb"}, "one of .*found coulomb"),
        ({"switch_on": 3.0}, "between 0 and the cut-off, 2.5; found 3"),
        ({"box": (4.0,)}, "space has 2 or 3 dimensions; found 1"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(make(2)[0], **changed)


def test_a_full_list_is_named_when_the_motion_stops() -> None:
    model, params, state = make(neighbours=20)
    with pytest.raises(InputError, match=r"An atom has \d+ neighbours within cut-off and skin, and room for 20"):
        rollout(model, params, state, steps=2)


def test_a_list_that_is_full_on_the_way_back_is_named() -> None:
    """Lists are made where the pass begins: forward without an atom that comes within the skin, backward with it."""
    model = Molecular(3, (math.inf, math.inf), dt=0.005, cutoff=2.5, switch_on=2.0, skin=0.3, neighbours=1)
    mass = tensor(np.ones(3))
    params = Params(mass, *[tensor(value, requires_grad=True) for value in (1.0, 1.0, 5.0, 1.0, 1.0)])
    position = tensor(np.array([[0.0, 0.0], [1.2, 0.0], [-2.82, 0.0]]), requires_grad=True)
    velocity = tensor(np.array([[0.0, 0.0], [0.0, 0.0], [2.0, 0.0]]))
    state = State(position, velocity, *[tensor(x) for x in (np.zeros(()), np.zeros(0), np.zeros(0))])
    final = rollout(model, params, state, steps=10, keep="final").final
    with pytest.raises(InputError, match=r"list of neighbours: on the way back.*at most 1.*Raise `neighbours`"):
        final.velocity.sum().backward()
