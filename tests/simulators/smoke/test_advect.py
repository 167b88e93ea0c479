"""Advection of velocity and smoke, and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, jvp, runtime, tensor
from simphys.simulator import Array
from simphys.simulators.smoke import advect
from simphys.simulators.smoke.advect import AdvectSmoke, AdvectVelocity
from simphys.simulators.smoke.model import ADVECTIONS, Smoke
from simphys.simulators.smoke.shapes import coordinates

from ...helpers.rounding import assert_equal_but_for_rounding
from .flows import CHANNEL, check, some, velocity

BOTH = pytest.mark.parametrize("advection", ADVECTIONS)


def model_of(*cells: int, dt: float = 0.6, **options: Any) -> Smoke:
    """Build a model in which a velocity of 1.5 crosses nearly two cells per step."""
    return Smoke(cells, spacing=0.5, dt=dt, **options)


GRIDS: dict[str, dict[str, Any]] = {
    "periodic": {"grid": "collocated"},
    "walls": {"grid": "collocated", "boundaries": ("closed", "closed", "periodic", "periodic")},
    "channel": {"boundaries": CHANNEL},
    "slip": {"boundaries": ("open", "closed", "closed", "inflow"), "slip": True},
    "torus": {},
}


def advected(transport: Any, model: Smoke, *arrays: Array) -> Array:
    """Apply the transport of velocity or smoke to arrays."""
    found: Array = transport.apply(model, *map(tensor, arrays)).data
    return found


def numbers(*shape: int) -> Array:
    return np.zeros(shape, runtime.real_dtype())


@BOTH
@pytest.mark.parametrize("kind", GRIDS)
def test_every_element_of_the_jacobians_is_right(kind: str, advection: str) -> None:
    model = model_of(5, 4, advection=advection, **GRIDS[kind])
    check(AdvectVelocity.apply, model, velocity(model), some(4, 2, seed=3))
    check(AdvectSmoke.apply, model, some(*model.cells), velocity(model), some(4, seed=3))


@BOTH
def test_the_derivatives_in_space_are_right(advection: str) -> None:
    sides = ("inflow", "open", "closed", "closed", "periodic", "periodic")
    model = model_of(4, 3, 3, advection=advection, boundaries=sides)
    check(AdvectVelocity.apply, model, velocity(model), some(6, 3, seed=3))
    check(AdvectSmoke.apply, model, some(*model.cells), velocity(model), some(6, seed=3))


@BOTH
@pytest.mark.gpu
def test_a_uniform_flow_of_whole_cells_moves_everything_as_it_is(advection: str) -> None:
    model = Smoke((9, 20), 0.5, 0.25, grid="collocated", advection=advection)
    u, smoke = numbers(2, 9, 20), some(9, 20).data
    u[0], u[1] = 4.0, -6.0  # 2 and 3 cells
    found = advected(AdvectSmoke, model, smoke, u, numbers(4))
    np.testing.assert_allclose(found, np.roll(smoke, (2, -3), (0, 1)), rtol=1e-6)
    np.testing.assert_allclose(advected(AdvectVelocity, model, u, numbers(4, 2)), u, rtol=1e-6)


@BOTH
@pytest.mark.parametrize("periods", [1, 40, -40])
def test_far_beyond_its_end_a_periodic_field_begins_again(advection: str, periods: int) -> None:
    model = Smoke((8, 6), 1.0, 1.0, advection=advection)
    u, smoke = velocity(model).data, some(8, 6).data
    near = advected(AdvectSmoke, model, smoke, u, numbers(4))
    shift = np.array([8.0, 6.0])[:, None, None] * periods
    np.testing.assert_allclose(advected(AdvectSmoke, model, smoke, u + shift, numbers(4)), near, atol=1e-11)


@BOTH
@pytest.mark.parametrize("boundaries", [CHANNEL, ("closed",) * 4, ("open",) * 4])
def test_smoke_that_is_the_same_everywhere_stays_so(boundaries: tuple[str, ...], advection: str) -> None:
    """Interpolation adds a share of differences that are 0; so no rounding decides the gradient at limits."""
    model = model_of(6, 5, boundaries=boundaries, advection=advection)
    smoke = np.full(model.cells, 0.3)
    np.testing.assert_array_equal(advected(AdvectSmoke, model, smoke, velocity(model).data, np.full(4, 0.3)), smoke)


def rotation(n: int) -> tuple[Smoke, Array, Array, Array]:
    """Build a steady flow around cells of a doubly periodic plane, with smoke now and after time 1."""
    model = Smoke((n, n), 2 * np.pi / n, 1.0 / n, advection="maccormack")
    velocity = np.zeros((2, n, n))
    for component in range(2):
        x, y = coordinates(model, component)
        velocity[component] = np.sin(x) * np.cos(y) if component == 0 else -np.cos(x) * np.sin(y)

    def speed(x: Array, y: Array) -> tuple[Array, Array]:
        return np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y)

    i = 2 * np.pi / n * (np.arange(n) + 0.5)
    x, y = (np.ascontiguousarray(a) for a in np.meshgrid(i, i, indexing="ij"))
    px, py = x.copy(), y.copy()
    steps = 200
    for _ in range(steps):  # backward along the flow, by the midpoint rule
        u, v = speed(px, py)
        u, v = speed(px - u / (2 * steps), py - v / (2 * steps))
        px, py = px - u / steps, py - v / steps
    return model, velocity, pattern(x, y), pattern(px, py)


def pattern(x: Array, y: Array) -> Array:
    return np.sin(x + 0.3) * np.cos(2 * y) + 0.5 * np.cos(x - y)


@pytest.mark.parametrize(("advection", "order"), [("semi_lagrangian", 1), ("maccormack", 2)])
def test_the_error_falls_with_the_order_in_space_and_time(advection: str, order: int) -> None:
    """Measured by the mean error, as limits reduce the second order at extrema of smoke."""
    errors = []
    for n in (32, 64, 128):
        model, u, smoke, exact = rotation(n)
        model = Smoke(model.cells, model.spacing, model.dt, advection=advection)
        for _ in range(n):
            smoke = advected(AdvectSmoke, model, smoke, u, np.zeros(4))
        errors.append(np.abs(smoke - exact).mean())
    rates = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (np.abs(rates - order) < 0.1).all(), rates


@BOTH
def test_no_new_extrema_appear(advection: str) -> None:
    model = model_of(9, 8, boundaries=CHANNEL, advection=advection)
    smoke, enters = np.random.default_rng(0).uniform(0, 1, model.cells), np.array([0.4, 9.0, 9.0, 9.0])
    found = advected(AdvectSmoke, model, smoke, velocity(model).data, enters)
    assert found.min() >= 0 and found.max() <= 1
    assert not np.array_equal(found, smoke)


@BOTH
def test_what_comes_from_outside_has_the_value_of_the_side(advection: str) -> None:
    model = model_of(6, 5, boundaries=CHANNEL, advection=advection)
    u = numbers(2, *model.faces)
    u[0, :, :5] = 1.25  # 1.5 cells: departure points of the first cell are outside, of the second at the side
    smoke = np.ones(model.cells)
    found = advected(AdvectSmoke, model, smoke, u, np.array([0.4, 9.0, 9.0, 9.0]))
    np.testing.assert_allclose(found[:2], 0.4, rtol=1e-13)
    np.testing.assert_array_equal(found[3:], 1.0)


def test_between_a_wall_and_the_next_values_the_fluid_has_what_lies_between() -> None:
    """The wall is half a cell from the nearest entry, and the fluid at it has the wall's tangential velocity."""
    model = Smoke(
        (4, 6), 1.0, 1.0, boundaries=("periodic", "periodic", "closed", "closed"), advection="semi_lagrangian"
    )
    u, walls = numbers(2, *model.faces), numbers(4, 2)
    u[0, :, :6] = 3.0
    u[1, :, 1:6] = 0.25  # from the wall at y-; 1/8 at the centre of the cells next to it
    walls[2, 0] = 1.0
    moved = advected(AdvectVelocity, model, u, walls)
    np.testing.assert_allclose(moved[0, :, 0], 3.0 - 2.0 * 0.125 / 0.5)
    np.testing.assert_allclose(moved[0, :, 1:6], 3.0)


def slope(model: Smoke, smoke: Array, u: Tensor) -> Array:
    """Compute the derivative of the sum of smoke over all cells by velocity."""
    AdvectSmoke.apply(model, tensor(smoke), u, tensor(np.zeros(4))).sum().backward()
    assert u.grad is not None
    return u.grad.data


def test_at_a_cell_itself_the_slope_is_that_towards_the_next_one() -> None:
    model = Smoke((5, 4), 1.0, 1.0, grid="collocated", advection="semi_lagrangian")
    smoke = np.outer([0.0, 1.0, 4.0, 9.0, 16.0], np.ones(4))
    found = slope(model, smoke, tensor(np.zeros((2, 5, 4)), requires_grad=True))
    np.testing.assert_allclose(found[0], np.outer([-1.0, -3.0, -5.0, -7.0, 16.0], np.ones(4)))
    assert not found[1].any()


def test_from_outside_a_wall_nothing_depends_on_how_far() -> None:
    walls = ("closed", "closed", "periodic", "periodic")
    model = Smoke((5, 4), 1.0, 1.0, grid="collocated", boundaries=walls, advection="semi_lagrangian")
    smoke, u = np.outer([0.0, 1.0, 4.0, 9.0, 16.0], np.ones(4)), np.zeros((2, 5, 4))
    u[0, 0], u[0, 1], u[0, 4] = 0.5, 2.0, -0.75  # to the side itself, beyond it, beyond the other one
    found = slope(model, smoke, tensor(u, requires_grad=True))
    assert not found[0, [0, 1, 4]].any()
    assert found[0, [2, 3]].all()


def test_limited_smoke_is_that_of_the_cell_which_limits_it() -> None:
    """The first of several equal cells counts, and MacCormack's correction has no effect."""
    model = Smoke((6, 4), 1.0, 1.0, grid="collocated", advection="maccormack")
    u = np.zeros((2, 6, 4))
    u[0] = 0.5
    smoke = np.outer([0.0, 0.0, 0.0, 1.0, 1.0, 1.0], np.ones(4))
    # The scheme would give -1/8 in cell 2 and 9/8 in cell 5.
    field = tensor(smoke, requires_grad=True)
    found = AdvectSmoke.apply(model, field, tensor(u), tensor(np.zeros(4)))
    np.testing.assert_allclose(found.data[:, 0], [0.375, 0.0, 0.0, 0.625, 1.0, 1.0])
    found[5, 2].backward()
    assert field.grad is not None
    expected = np.zeros((6, 4))
    expected[4, 2] = 1.0
    np.testing.assert_array_equal(field.grad.data, expected)


def test_smoke_at_the_limit_itself_is_not_limited() -> None:
    """Uniform surroundings give the derivatives of MacCormack's scheme."""
    model = Smoke((9, 4), 1.0, 1.0, grid="collocated", advection="maccormack")
    u = np.zeros((2, 9, 4))
    u[0] = 0.5
    field = tensor(np.full((9, 4), 0.7), requires_grad=True)
    AdvectSmoke.apply(model, field, tensor(u), tensor(np.zeros(4)))[4, 1].backward()
    assert field.grad is not None
    np.testing.assert_allclose(field.grad.data[:, 1], [0, 0, 0, 0.5 - 0.125 + 0.0, 0.5 + 0.5 - 0.25, -0.125, 0, 0, 0])


@BOTH
def test_a_velocity_that_is_no_number_does_no_harm_elsewhere(advection: str) -> None:
    model = model_of(6, 5, boundaries=CHANNEL, advection=advection)
    u = velocity(model).data.copy()
    u[0, 2, 2], u[1, 3, 3], u[0, 5, 4] = np.nan, np.inf, 1e300
    found = advected(AdvectSmoke, model, some(6, 5).data, u, np.zeros(4))
    assert np.isfinite(found[0]).all()


def test_all_loops_are_the_same_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(40, 7, boundaries=CHANNEL)
    inputs = some(40, 7), velocity(model), some(4)

    def run() -> list[Array]:
        advect._space.cache_clear()
        moved, (dmoved,) = jvp(lambda *x: AdvectSmoke.apply(model, *x), inputs, [x.data for x in inputs])
        return [moved.data, dmoved]

    serial = run()
    monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
    parallel = run()
    advect._space.cache_clear()
    for one, other in zip(serial, parallel, strict=True):
        assert_equal_but_for_rounding(other, one, ulps=64)


@BOTH
@pytest.mark.gpu
@pytest.mark.parametrize("kind", GRIDS)
def test_transport_and_its_adjoint_are_the_same_on_each_device(kind: str, advection: str) -> None:
    """A GPU has a thread for each point, whose sums are atomic; the processor goes through a line."""
    model = model_of(5, 20, advection=advection, **GRIDS[kind])

    def run() -> list[Array]:
        velocities, smoke = (
            [velocity(model), some(4, 2, seed=3)],
            [some(*model.cells), velocity(model), some(4, seed=3)],
        )
        found = AdvectVelocity.apply(model, *velocities), AdvectSmoke.apply(model, *smoke)
        (found[0] * found[0]).sum().backward()
        (found[1] * found[1]).sum().backward()
        gradients = [each.grad.data for each in (*velocities, *smoke) if each.grad is not None]
        assert len(gradients) == 5
        return [*[each.data for each in found], *gradients]

    found = run()
    with runtime.using(runtime.Settings(precision="f64")):
        expected = run()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
