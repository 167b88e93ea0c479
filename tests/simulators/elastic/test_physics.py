"""Elastic waves in closed form: speeds of P, S and Rayleigh waves and their orders, energy, layers, sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.numerics.staggered import ORDERS, make_operators, staggered_difference
from simphys.rollout import rollout
from simphys.simulators.elastic import Elastic, Params, State
from simphys.simulators.elastic.points import receive, strain_fibre

from .closed_forms import RHO, VP, VS, WIDTH, be_still, box_mode, build, place, rayleigh, rayleigh_speed
from .systems import BOX, SPACE, make_system

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("order", ORDERS)
def test_differences_are_accurate_up_to_their_ends_and_sum_by_parts(order: int) -> None:
    n, degree = 40, {2: 1, 4: 2, 8: 3}[order]
    centres, faces, weight_c, weight_f = make_operators(order, n)
    np.testing.assert_allclose(weight_c[:, None] * centres, -(weight_f[:, None] * faces).T, atol=1e-12)
    assert min(weight_c.min(), weight_f.min()) > 0.3
    f, c = np.arange(n) / n, (np.arange(n) + 0.5) / n
    for power in range(degree + 1):  # (1 - x) makes the value at the last face 0, x the traction at face 0
        values, slopes = (1 - f) * f ** max(power - 1, 0), np.gradient(np.ones(n))
        poly = np.polynomial.Polynomial([1, -1]) * np.polynomial.Polynomial([0, 1]) ** max(power - 1, 0)
        if poly.degree() <= degree:
            np.testing.assert_allclose(n * centres @ values, poly.deriv()(c) + 0 * slopes, atol=1e-9)
        zero = np.polynomial.Polynomial([0, 1]) ** max(power, 1)
        np.testing.assert_allclose((n * faces @ zero(c))[:-12], zero.deriv()(f)[:-12], atol=1e-9)
    scaled = np.sqrt(weight_c)[:, None] * centres / np.sqrt(weight_f)
    assert np.linalg.norm(scaled, 2) <= 2 * sum(np.abs(staggered_difference(order))) + 1e-12


def error(model: Elastic, wave: Callable[..., Array], end: float) -> float:
    """Largest RMS error, of velocities and stresses, near the top at a time [s], as part of the fields' own RMS."""
    steps = int(np.ceil(end / model.dt))
    model = replace(model, dt=end / steps)
    params, state = build(model, wave)
    final = rollout(model, params, state, steps=steps, keep="final").final
    near, found = round(WIDTH / model.spacing), []
    for fields in (model.velocities, model.stress_components):
        parts, size = [], []
        for field in fields:
            time = end - 0.5 * model.dt if field[0] == "v" else end
            expected = wave(field, *place(model, field), t=time) * model.mask(field)
            parts.append((getattr(final, field).data - expected)[..., :near])
            size.append(wave(field, *place(model, field), t=0.25 * end)[..., :near])
        found.append(np.sqrt(np.mean(np.square(parts)) / np.mean(np.square(size))))
    return max(found)


def make_box(n: int, order: int, depth: float, top: str = "free", part: float = 0.5) -> Elastic:
    """Make a box of the width WIDTH and a depth [m], with a part of the largest time step."""
    h = WIDTH / n
    model = Elastic((n, round(depth * n)), h, 1.0, order=order, sides=("wall", "wall", top, "wall"))
    return replace(model, dt=part * model.largest_dt(VP))


@pytest.mark.parametrize(
    ("order", "counts", "parts", "least"),
    [(2, (12, 24), (0.5, 0.5), 1.95), (4, (14, 28), (0.4, 0.2), 2.9), (8, (24, 30), (0.12, 0.08), 3.5)],
)
def test_a_rayleigh_wave_along_the_free_surface_keeps_its_speed_and_shape(
    order: int, counts: tuple[int, int], parts: tuple[float, float], least: float
) -> None:
    """Half a period of a standing wave; the error falls with the order of the differences next to the surface."""
    end = WIDTH / rayleigh_speed()
    coarse, fine = (
        error(make_box(n, order, 4.0, part=part), rayleigh, end) for n, part in zip(counts, parts, strict=True)
    )
    assert fine < coarse < 0.06
    assert np.log(coarse / fine) / np.log(counts[1] / counts[0]) > least


@pytest.mark.parametrize("shear", [False, True])
@pytest.mark.parametrize(("dim", "count", "most"), [(2, 20, 0.006), (3, 8, 0.04)])
def test_p_and_s_waves_between_walls_have_their_speeds(dim: int, count: int, most: float, shear: bool) -> None:
    wave = partial(box_mode, shear=shear)
    end = 1.3 * WIDTH / (VS if shear else VP)
    boxes = [Elastic((n,) * dim, WIDTH / n, 1.0, sides=("wall",) * 2 * dim) for n in (count, 2 * count)]
    errors = [error(replace(box, dt=0.5 * box.largest_dt(VP)), wave, end) for box in boxes]
    assert errors[1] < most
    assert np.log2(errors[0] / errors[1]) > 1.9


@pytest.mark.parametrize(("order", "cells"), [*[(order, (24, 24)) for order in ORDERS], (4, (13, 12, 14))])
def test_energy_is_conserved_in_a_closed_box_of_any_medium(order: int, cells: tuple[int, ...]) -> None:
    """The leapfrog's own energy: of velocities, and of the stresses before and after them."""
    sides = (*["wall"] * (2 * len(cells) - 2), "free", "wall")
    model = Elastic(cells, 0.1, 0.02, order=order, sides=sides)
    _, params, state, _ = make_system(model, 1)
    names = (*model.velocities, *model.shear_stresses)
    masks = {field: tensor(getattr(state, field).data * model.mask(field)) for field in names}
    motion = rollout(model, params, state.replace(**masks), steps=60).states
    energy = [compute_energy(model, params, motion, step) for step in range(60)]
    assert np.ptp(energy) < 1e-11 * energy[0]


def compute_energy(model: Elastic, params: Params, states: State, step: int) -> float:
    """Energy [J], in a section by length along y, less the volume of a cell, between two states."""

    def take_mean(values: Array, axes: str) -> Array:
        for name in axes:
            number = model.axes.index(name)
            values = np.moveaxis(np.tensordot(model.axis(name).mean, values, (1, number)), 0, number)
        return values

    fields = {name: getattr(states, name).data for name in (*model.velocities, *model.stress_components)}
    vp, vs, rho = (x.data for x in (params.vp, params.vs, params.density))
    mu = rho * vs**2
    lam = rho * vp**2 - 2 * mu
    total = 0.0
    for name in model.velocities:
        total += np.sum(model.weights(name) * take_mean(rho, name[1]) * fields[name][step + 1] ** 2)
    for name in model.shear_stresses:
        compliance = take_mean(1 / mu, name[1:])
        total += np.sum(model.weights(name) * compliance * fields[name][step] * fields[name][step + 1])
    old, new = (np.array([fields[name][step + i] for name in model.normal_stresses]) for i in (0, 1))
    pressures = lam / (len(model.axes) * lam + 2 * mu) * old.sum(axis=0) * new.sum(axis=0)
    total += np.sum(model.weights("sxx") * ((old * new).sum(axis=0) - pressures) / (2 * mu))
    return float(0.5 * total)


@pytest.mark.parametrize(("count", "layer", "steps", "dim"), [(60, 10, 500, 2), (28, 7, 280, 3)])
def test_layers_absorb_an_explosion(count: int, layer: int, steps: int, dim: int) -> None:
    """The energy that is left after the waves have gone, as part of that while the source acts."""
    model = Elastic(
        (count,) * dim, 0.1, 0.02, order=4, sides=(*["absorbing"] * (2 * dim - 2), "free", "absorbing"), layer=layer,
        layer_speed=VP, layer_frequency=1.0, sources=1, forces=False, moments=True,
    )  # fmt: skip
    params, state = build(model, be_still)
    times = model.dt * np.arange(steps) - 1.0
    pulse = tensor(((1 - 2 * (np.pi * times) ** 2) * np.exp(-((np.pi * times) ** 2)))[:, None])
    moment = [1.0] * dim + [0.0] * len(model.shear_stresses)
    where = [0.05 * count] * (dim - 1) + [0.035 * count]
    params = params.replace(source_position=tensor([where]), moment=tensor([moment]))
    motion = rollout(model, params, state, steps=steps, control=pulse, keep=[60, 61, steps - 1, steps]).states
    driven, left = (compute_energy(model, params, motion, row) for row in (0, 2))
    assert left < 1e-6 * driven


@pytest.mark.parametrize("dim", [2, 3])
def test_forces_and_moments_give_momentum_and_moment(dim: int) -> None:
    """What a step adds to the momentum is the force times dt; to the stress, less the moment rate times dt."""
    model = replace(BOX, cells=(12,) * dim, order=4, moments=True, sides=(*["wall"] * (2 * dim - 2), "free", "wall"))
    params, state = build(model, be_still)
    force, moment = (
        np.array([[2.0, -3.0, 4.0][:dim]]),
        np.array([[1.0, 2.0, 0.5, 3.0, -1.0, 2.0][: len(model.stress_components)]]),
    )
    places = {"source_position": tensor([[0.63, 0.55, 0.02][-dim:]]), "receiver_position": tensor([[0.6] * dim])}
    params = params.replace(force=tensor(force), moment=tensor(moment), **places)
    final = rollout(model, params, state, steps=1, control=tensor([[1.5]])).final
    volume = model.spacing**dim
    for field, expected in zip(model.velocities, force[0], strict=True):
        momentum = RHO * volume * np.sum(model.weights(field) * getattr(final, field).data)
        np.testing.assert_allclose(momentum, 1.5 * expected * model.dt, rtol=1e-12)
    still = rollout(model, params.replace(force=tensor(0 * force)), state, steps=1, control=tensor([[1.5]])).final
    for field, expected in zip(model.stress_components, moment[0], strict=True):
        if model.place(field)[-1]:  # at the free surface, shear stresses vanish
            total = volume * np.sum(model.weights(field) * getattr(still, field).data)
            np.testing.assert_allclose(total, -1.5 * expected * model.dt, rtol=1e-12)


def test_receivers_at_the_free_surface_read_both_velocities_there() -> None:
    """Horizontal velocities lie half a cell below it, and are continued."""
    at, errors = np.array([[0.31, 0.0], [0.7, 0.02], [0.45, 0.5]]), []
    for n in (20, 40):
        model = replace(make_box(n, 4, 1.0), receivers=3)
        params, _ = build(model, rayleigh)
        fields = {field: tensor(rayleigh(field, *place(model, field), t=0.4)) for field in model.velocities}
        found = receive(model, params.replace(receiver_position=tensor(at)), fields).data
        expected = np.concatenate([rayleigh(field, at[:, 0], at[:, 1], t=0.4) for field in model.velocities])
        errors.append(np.abs(found - expected).max() / np.abs(expected).max())
    assert errors[1] < 2e-5 and errors[0] > 8 * errors[1]


@pytest.mark.parametrize("dim", [2, 3])
def test_a_fibre_measures_the_strain_along_itself(dim: int) -> None:
    """A velocity that is linear in space strains every channel evenly; a channel may lie at the free surface."""
    gauges = ((0.3, 0.2, -0.1), (0.25, 0.1, 0.0))
    model = Elastic(
        (12,) * dim, 0.1, 0.02, sides=(*["wall"] * (2 * dim - 2), "free", "wall"),
        fibre=tuple([(*gauge[: dim - 1], gauge[2]) for gauge in gauges]),
    )  # fmt: skip
    params, _ = build(model, be_still)
    at, slopes = np.array([[0.6] * dim, [0.55] * (dim - 1) + [0.0]]), np.array([[1, 2, 3], [-1, 0.5, 4], [2, -3, 1.5]])
    fields = {}
    for row, name in enumerate(model.velocities):
        x = np.stack(np.broadcast_arrays(*place(model, name)), axis=-1)
        fields[name] = tensor(np.tensordot(x, slopes[row, :dim], 1))
    found = strain_fibre(model, params.replace(fibre_position=tensor(at)), tensor([0.5, 0.0]), fields).data
    along = np.array(model.fibre)
    rates = np.einsum("fi,ij,fj->f", along, slopes[:dim, :dim], along) / (along**2).sum(axis=1)
    np.testing.assert_allclose(found, [0.5, 0.0] + model.dt * rates, rtol=1e-12)


def test_the_gradient_in_space_is_that_of_differences() -> None:
    """Along a random direction of all inputs at once: state, parameters and control."""
    system = make_system(SPACE, 2)
    random = np.random.default_rng(4)
    values = {name: x.data for name, x in system.inputs().items()}
    directions = {name: 0.1 * tensor(random.standard_normal(x.shape)) for name, x in values.items()}
    weights = {name: tensor(random.standard_normal(shape)) for name, shape in SPACE.state_shapes().items()}

    def move(length: Tensor) -> Tensor:
        inputs = {name: tensor(x) + length * directions[name] for name, x in values.items()}
        model, params, state, control = system.replace(inputs)
        final = rollout(model, params, state, steps=2, control=control).final
        return sum([(weights[name] * getattr(final, name)).sum() for name in weights], start=tensor(0.0))

    gradcheck(move, (tensor([0.5], requires_grad=True),), tolerance=1e-8)
