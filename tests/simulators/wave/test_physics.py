"""Physical properties that waves must have, whatever computes them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import no_grad, tensor
from simphys.rollout import rollout
from simphys.simulators.wave.curvature import compute_curvature
from simphys.simulators.wave.model import Wave

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import TORUS, Array, case, still


def run(model: Wave, steps: int, *, control: Any = None, speed: Any = 1.0, **start: Any) -> dict[str, Array]:
    """Run a rollout and return its states over time."""
    params, state = still(model, speed=speed, **start)
    with no_grad():
        strength = None if control is None else tensor(control)
        return rollout(model, params, state, steps=steps, control=strength).states.arrays()


# --- standing waves


def standing(n: int, order: int, dt: float) -> tuple[Wave, Array, float]:
    """Return a model of length n dx = 1 between zero and free sides, a standing mode, and its squared wave number."""
    model = Wave((n - 1, n), 1 / n, dt, order=order, boundaries=("zero", "zero", "free", "free"))
    kx, ky = np.pi * 2, np.pi * 3
    x, y = (np.arange(n - 1) + 1) / n, (np.arange(n) + 0.5) / n
    return model, np.outer(np.sin(kx * x), np.cos(ky * y)), kx**2 + ky**2


@pytest.mark.parametrize("order", [2, 4, 8])
def test_the_error_in_space_is_of_the_order_named(order: int) -> None:
    """Measured by the frequency of a standing wave, after removing the known error of leapfrog in time."""
    errors = []
    for n in (16, 32):
        model, shape, k2 = standing(n, order, dt := 0.2 / n)
        height = run(model, 9, height=shape, previous=shape * np.cos(np.sqrt(k2) * dt))["height"]
        a = (height * shape).sum(axis=(1, 2))
        np.testing.assert_allclose(height[-1], a[-1] / a[0] * shape, atol=1e-12)  # the mode keeps its shape
        cosine = (a[2:] + a[:-2]) @ a[1:-1] / (2 * a[1:-1] @ a[1:-1])
        errors.append(abs(2 * (1 - cosine) / dt**2 / k2 - 1))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.12)


def test_the_error_in_time_is_of_second_order() -> None:
    errors = []
    for steps in (80, 160):
        model, shape, k2 = standing(32, 8, dt := 1.0 / steps)
        omega = 1.3 * np.sqrt(k2)
        height = run(model, steps, speed=1.3, height=shape, previous=shape * np.cos(omega * dt))["height"]
        errors.append(np.abs(height[-1] - np.cos(omega) * shape).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)


# --- travelling waves


@pytest.mark.parametrize(("sides", "sign"), [(("zero", "zero"), -1), (("free", "free"), 1)], ids=["zero", "free"])
def test_a_pulse_at_courant_number_one_is_dalemberts(sides: tuple[str, str], sign: int) -> None:
    """Any pulse moves one cell per step unchanged; zero sides reflect it upside down, free sides upright."""
    n, dx = 40, 0.1
    pulse, before = np.zeros(n), np.zeros(n)
    pulse[5:12] = np.random.default_rng(0).normal(size=7)
    before[4:11] = pulse[5:12]
    model = Wave((n,), dx, dx / 2.0, boundaries=sides)
    height = run(model, 70, speed=2.0, height=pulse, previous=before)["height"]
    assert_equal_but_for_rounding(height[20], np.roll(pulse, 20), ulps=20 * 20)
    turned = n if sign < 0 else n - 0.5  # position of the side: the first cell beyond the grid, or halfway to it
    expected = np.zeros(n)
    for i in range(5, 12):
        expected[round(2 * turned - (i + 50))] = sign * pulse[i]
    assert_equal_but_for_rounding(height[50], expected, ulps=50 * 50)


def test_a_travelling_wave_comes_round_on_a_torus() -> None:
    """After a full period in space and time the field returns to itself, up to numerical dispersion."""
    n = 24
    model = Wave((n, n), 1 / n, 1 / 200, order=8, boundaries=("periodic",) * 4)
    x, y = np.meshgrid(np.arange(n) / n, np.arange(n) / n, indexing="ij")
    speed = 1 / np.sqrt(5)  # of the wave with wave numbers 2 pi (2, 1): its frequency is 2 pi

    def at(t: float) -> Array:
        return np.sin(2 * np.pi * (2 * x + y - t))

    height = run(model, 200, speed=speed, height=at(0), previous=at(-model.dt))["height"]
    np.testing.assert_allclose(height[50], at(0.25), atol=1e-3)
    np.testing.assert_allclose(height[200], at(1), atol=2e-3)


# --- energy


def test_energy_is_conserved_to_rounding() -> None:
    """The energy of leapfrog is sum |u' - u|^2 / (2 dt^2 c^2) - u' laplace u / 2, in any medium, without layers."""
    given = case(replace(TORUS, sources=(), receivers=0), 1)
    speed = given.params.speed.data
    start = {"height": given.state.height.data, "previous": given.state.previous.data}
    u = run(given.model, 300, speed=speed, **start)["height"]
    rest = tensor(np.zeros(0))
    curvatures = np.array([compute_curvature(given.model, tensor(x), rest, rest)[0].data for x in u[:-1]])
    kinetic = ((np.diff(u, axis=0) / (speed * given.model.dt)) ** 2).sum(axis=(1, 2)) / 2
    potential = -(u[1:] * curvatures).sum(axis=(1, 2)) / 2 / given.model.spacing**2
    energy = kinetic + potential
    assert np.ptp(kinetic) > 0.1 * energy[0] > 0
    np.testing.assert_allclose(energy, energy[0], rtol=1e-12)


# --- sources and receivers


def test_source_and_receiver_may_be_exchanged() -> None:
    """Reciprocity holds in any medium without layers."""
    model, here, there = TORUS, [[0.32, 0.51]], [[0.61, 1.13]]
    speed = case(model, 1).params.speed.data
    strength = np.random.default_rng(2).normal(size=(40, 1))
    one, other = (
        run(model, 40, control=strength, speed=speed, source_position=a, receiver_position=b)["received"]
        for a, b in ((here, there), (there, here))
    )
    assert np.abs(one).max() > 1e-3
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * np.abs(one).max())


def bump(t: Array, width: float) -> Array:
    """Compute a smooth pulse centred at 3.5 widths."""
    return np.exp(-(((t - 3.5 * width) / width) ** 2))


def test_a_source_on_a_line_leaves_a_plateau_behind() -> None:
    """u(x, t) is c / 2 times the integral of the source strength up to t - |x - x_s| / c."""
    n, dx, c, width, steps = 120, 0.1, 2.0, 0.15, 80
    model = Wave((n,), dx, 0.5 * dx / c, order=8, sources=("point",), receivers=1)
    t = np.arange(steps) * model.dt
    got = run(
        model, steps, speed=c, control=bump(t, width)[:, None], source_position=[[5.93]], receiver_position=[[7.27]]
    )["received"][:, 0]
    given = np.cumsum(bump(t, width)) * model.dt - bump(t, width) * model.dt / 2  # by the trapezoidal rule
    delay = (7.27 - 5.93) / c
    np.testing.assert_allclose(
        got[1:], np.interp(t + model.dt - delay, t, given, left=0) * c / 2, atol=5e-3 * given[-1]
    )


def test_a_point_source_in_space_is_heard_as_it_sounded_and_fades_by_distance() -> None:
    """The solution is u(r, t) = strength(t - r / c) / (4 pi r)."""
    n, dx, c, width = 30, 0.1, 1.0, 0.25
    model = Wave((n,) * 3, dx, 0.3 * dx / c, order=4, sources=("point",), receivers=2)
    steps = 60
    t = np.arange(steps) * model.dt
    source = np.array([1.43, 1.52, 1.47])
    receivers = np.array([[0.5, 0, 0], [0.4, -0.4, 0.3]]) + source
    received = run(
        model, steps, speed=c, control=bump(t, width)[:, None], source_position=source, receiver_position=receivers
    )["received"][1:]
    for got, place in zip(received.T, receivers, strict=True):
        r = float(np.linalg.norm(place - source))
        late = t + model.dt - r / c
        expected = np.where(late > 0, bump(late, width), 0) / (4 * np.pi * r)
        early = t < 1.8  # before the first reflections from the sides
        np.testing.assert_allclose(got[early], expected[early], atol=0.02 * expected.max())


# --- absorbing layers


def ricker(t: Array, f: float) -> Array:
    """Compute the Ricker wavelet of this dominant frequency, centred at 0."""
    a = (np.pi * f * t) ** 2
    return (1 - 2 * a) * np.exp(-a)


@pytest.mark.parametrize("order", [4, 8])
def test_a_pulse_on_a_line_leaves_through_a_layer(order: int) -> None:
    n, dx, c, f = 90, 0.1, 1.0, 1.0
    x = np.arange(n) * dx
    model = Wave(
        (n,), dx, 0.05, order=order, boundaries=("absorbing", "absorbing"), layer=20, layer_speed=c, layer_frequency=f
    )
    height, previous = (ricker((x - 4) / c - t, f) for t in (0, -model.dt))
    inside = np.abs(run(model, 240, speed=c, height=height, previous=previous)["height"][:, 20:70])
    assert inside[30].max() > 0.8
    assert inside[140:].max() < 2e-3


def test_a_ring_in_the_plane_leaves_as_if_there_were_no_side() -> None:
    """Compare with a grid so large that no reflection has returned from its sides."""
    dx, c, f, steps = 0.1, 1.0, 1.0, 150
    model = Wave(
        (60, 56), dx, 0.05, order=4, boundaries=("absorbing",) * 4, layer_speed=c, layer_frequency=f,
        layer=20, sources=("point",),
    )  # fmt: skip
    t = np.arange(steps) * model.dt
    strength = ricker(t - 1.2 / f, f)[:, None]
    large = replace(model, cells=(140, 136))
    small = run(model, steps, speed=c, control=strength, source_position=[[2.53, 2.41]])["height"]
    free = run(large, steps, speed=c, control=strength, source_position=[[6.53, 6.41]])["height"]
    error = (small - free[:, 40:100, 40:96])[:, 20:40, 20:36]
    peak = np.abs(free[:, 60:80, 60:76]).max()
    assert np.abs(free[:, 60, 60]).max() > 0.1 * peak  # the ring does reach the layers
    assert np.abs(error).max() < 0.01 * peak


def test_all_energy_leaves_through_layers_on_all_sides() -> None:
    """Nothing grows in the long run, even where two layers cross."""
    model = Wave(
        (30, 30), 0.1, 0.06, order=4, boundaries=("absorbing",) * 4, layer=10, layer_speed=1.0, layer_frequency=1.0
    )
    x, y = np.meshgrid(*[np.arange(30) * 0.1 - 1.45] * 2, indexing="ij")
    hill = np.exp(-(x**2 + y**2) / 0.1)
    height = run(model, 2000, height=hill, previous=hill)["height"]
    sizes = np.abs(height).max(axis=(1, 2))
    assert sizes[1000] < 1e-2 and sizes[2000] < sizes[1000]
    assert all(b < 2 for b in itertools.chain(sizes))
