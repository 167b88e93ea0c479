"""Projection to divergence-free velocities: every solver, every kind of side, and the adjoint."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulator import Array
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.project import Project, adj_project

from ...helpers.rounding import assert_equal_but_for_rounding
from .parts import check_parts_of_arrays
from .projections import RUNS, Solves, projected

P, C, O, I = "periodic", "closed", "open", "inflow"  # noqa: E741
STAGGERED = [
    ((20, 18), (P, P, P, P)),
    ((19, 34), (C, C, P, P)),
    ((18, 36), (I, O, C, C)),
    ((34, 20), (P, P, O, O)),
    ((17, 5), (C, C, C, C)),
    ((4, 18, 6), (I, O, P, P, C, C)),
    ((6, 4, 18), (P, P, C, O, P, P)),
]
COLLOCATED = [
    ((18, 20), (P, P, P, P)),
    ((17, 6), (P, P, C, C)),
    ((18, 20), (C, C, P, P)),
    ((4, 18, 6), (C, C, P, P, C, C)),
]
CONVERGING = ("conjugate_gradients", "multigrid")


def model_of(cells: tuple[int, ...], boundaries: tuple[str, ...], **more: Any) -> Smoke:
    return Smoke(cells=cells, spacing=0.3, dt=0.1, boundaries=boundaries, **{"tolerance": 1e-12, **more})


def some(model: Smoke, seed: int = 0) -> Array:
    """Draw a velocity, 0 beyond the faces of each component, with zero net inflow if there is no open side."""
    velocity = np.random.default_rng(seed).normal(size=(model.dim, *model.faces))
    for a in range(model.dim):
        for b, n in enumerate(model.cells):
            if a != b and model.faces[b] > n:
                velocity[a][(slice(None),) * b + (n,)] = 0
        if model.faces[a] > model.cells[a] and "open" not in model.boundaries:
            velocity[a][(slice(None),) * a + (0,)] = 0
            velocity[a][(slice(None),) * a + (-1,)] = 0
    return velocity.astype(runtime.real_dtype())


def leaf(model: Smoke) -> Tensor:
    """Draw a velocity whose entries are nonzero even where there are no faces."""
    return tensor(np.random.default_rng(1).normal(size=(model.dim, *model.faces)), requires_grad=True)


def divergence(model: Smoke, velocity: Array) -> Array:
    """Compute the undivided divergence independently, in NumPy."""
    total = np.zeros(model.cells)
    for axis, n in enumerate(model.cells):
        u, cells = np.moveaxis(velocity[axis], axis, 0), np.moveaxis(total, axis, 0)
        others = tuple(slice(m) for b, m in enumerate(model.cells) if b != axis)
        if model.grid == "staggered":
            cells += np.concatenate([u, u[:1]])[1 : n + 1][(slice(None), *others)] - u[:n][(slice(None), *others)]
        elif model.boundaries[2 * axis] == P:
            cells += (np.roll(u, -1, axis=0) - np.roll(u, 1, axis=0)) / 2
        else:
            cells += (np.concatenate([u[1:], -u[-1:]]) - np.concatenate([-u[:1], u[:-1]])) / 2
    return total


def given_faces(model: Smoke) -> list[tuple[Any, ...]]:
    """List the indices of velocity entries at closed and inflow sides."""
    faces = []
    for side, kind in enumerate(model.boundaries):
        if kind in (C, I):
            faces.append((side // 2, *[slice(None)] * (side // 2), -(side % 2)))
    return faces


@pytest.mark.parametrize("projection", CONVERGING)
@pytest.mark.parametrize(("cells", "boundaries"), STAGGERED)
def test_on_a_staggered_grid_no_divergence_is_left(cells: Any, boundaries: Any, projection: str) -> None:
    model = model_of(cells, boundaries, projection=projection)
    velocity = some(model)
    after = projected(model, velocity)
    assert abs(divergence(model, after)).max() < 1e-10
    for face in given_faces(model):
        np.testing.assert_array_equal(after[face], velocity[face])
    np.testing.assert_allclose(projected(model, after), after, atol=1e-10)


@pytest.mark.parametrize("cells", [(20, 17), (4, 5, 6)])
def test_fourier_leaves_no_divergence_on_either_grid(cells: tuple[int, ...]) -> None:
    for grid in ("staggered", "collocated"):
        model = model_of(cells, (P,) * 2 * len(cells), grid=grid, projection="fft")
        velocity = some(model)
        after = projected(model, velocity)
        assert abs(divergence(model, after)).max() < 1e-12
        np.testing.assert_allclose((after * (velocity - after)).sum(), 0, atol=1e-11)  # orthogonal


def test_solvers_agree() -> None:
    for grid, projections in (("staggered", (*CONVERGING, "fft")), ("collocated", CONVERGING)):
        models = [model_of((20, 36), (P,) * 4, grid=grid, projection=name) for name in projections]
        found = [projected(model, some(model)) for model in models]
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], atol=1e-10)
    one, many = [model_of((5, 4), (I, O, C, C), projection=p, sweeps=2000) for p in ("multigrid", "jacobi")]
    np.testing.assert_allclose(projected(many, some(one)), projected(one, some(one)), atol=1e-10)


@pytest.mark.parametrize(("cells", "boundaries"), COLLOCATED)
def test_a_collocated_projection_is_approximate(cells: Any, boundaries: Any) -> None:
    """It never adds energy, and does not change a divergence-free uniform flow along a periodic axis."""
    model = model_of(cells, boundaries, grid="collocated")
    velocity = some(model)
    after = projected(model, velocity)
    assert (after**2).sum() < (velocity**2).sum()
    assert abs(divergence(model, after)).max() > 1e-2
    kept = (after * velocity).sum() / (after**2).sum()
    assert kept > 1 - 1e-12  # 0 <= P <= 1, so that P^2 <= P
    uniform = np.zeros_like(velocity)
    for axis in range(model.dim):
        uniform[axis] = 1.0 + axis if boundaries[2 * axis] == P else 0.0
    np.testing.assert_allclose(projected(model, uniform), uniform, atol=1e-13)


def test_net_inflow_into_a_closed_domain_remains_as_divergence() -> None:
    model = model_of((6, 4), (I, C, C, C))
    velocity = some(model)
    velocity[0, 0, :4] = 1.0
    left = divergence(model, projected(model, velocity))
    np.testing.assert_allclose(left, -1 / 6, atol=1e-11)


def test_a_potential_flow_is_taken_to_zero_and_a_vortex_is_left_alone() -> None:
    model = model_of((16, 16), (C,) * 4, projection="multigrid")
    x, y = np.meshgrid(*[np.arange(17) * np.pi / 16] * 2, indexing="ij")
    stream = np.sin(x) * np.sin(y)
    vortex = np.zeros((2, 17, 17))
    vortex[0, :, :16], vortex[1, :16, :] = np.diff(stream, axis=1), -np.diff(stream, axis=0)
    potential = np.random.default_rng(0).normal(size=(16, 16))
    gradient = np.zeros((2, 17, 17))
    gradient[0, 1:16, :16], gradient[1, :16, 1:16] = np.diff(potential, axis=0), np.diff(potential, axis=1)
    np.testing.assert_allclose(projected(model, vortex + gradient), vortex, atol=1e-10)


def test_jacobi_does_the_sweeps_of_stable_fluids() -> None:
    """Compare with one step of the benchmark against other programs, as written there."""
    model = model_of((11, 12), (P,) * 4, grid="collocated", projection="jacobi", sweeps=6)
    u, v = velocity = some(model)
    roll = np.roll
    div = -0.5 * (roll(u, -1, 0) - roll(u, 1, 0) + roll(v, -1, 1) - roll(v, 1, 1))
    p = 0 * div
    for _ in range(6):
        p = (div + roll(p, 1, 0) + roll(p, -1, 0) + roll(p, 1, 1) + roll(p, -1, 1)) / 4
    expected = [u - 0.5 * (roll(p, -1, 0) - roll(p, 1, 0)), v - 0.5 * (roll(p, -1, 1) - roll(p, 1, 1))]
    found = Project.apply(model, tensor(velocity)).data
    assert_equal_but_for_rounding(found, np.stack(expected), ulps=64)


@pytest.mark.gpu
def test_energy_is_not_gained_in_either_precision() -> None:
    model = model_of((8, 6), (I, O, P, P), projection="multigrid", tolerance=1e-5)
    velocity = some(model)
    after = projected(model, velocity)
    assert abs(divergence(model, after)).max() < 1e-3
    for face in given_faces(model):
        np.testing.assert_array_equal(after[face], velocity[face])


CHECKED = [
    ((3, 4), (I, O, P, P), "staggered"),
    ((4, 3), (C, C, O, I), "staggered"),
    ((3, 2, 4), (C, C, P, P, I, O), "staggered"),
    ((4, 3), (P, P, C, C), "collocated"),
    ((3, 2, 4), (C, C, P, P, P, P), "collocated"),
]


@pytest.mark.parametrize("projection", ["jacobi", *CONVERGING])
@pytest.mark.parametrize(("cells", "boundaries", "grid"), CHECKED)
def test_every_element_of_the_jacobian_is_right(cells: Any, boundaries: Any, grid: str, projection: str) -> None:
    model = model_of(cells, boundaries, grid=grid, projection=projection, sweeps=3, tolerance=1e-14)
    velocity = leaf(model)
    full = model.dim == 2
    gradcheck(lambda u: Project.apply(model, u), velocity, mode="full" if full else "projected", tolerance=1e-8)
    dot_product_test(lambda u: Project.apply(model, u), velocity, tolerance=1e-12)


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_every_element_of_the_jacobian_by_fourier_is_right(grid: str) -> None:
    model = model_of((4, 3), (P,) * 4, grid=grid, projection="fft")
    velocity = tensor(some(model), requires_grad=True)
    gradcheck(lambda u: Project.apply(model, u), velocity, tolerance=1e-8)
    dot_product_test(lambda u: Project.apply(model, u), velocity, tolerance=1e-13)


@pytest.mark.parametrize("projection", ["conjugate_gradients", "multigrid", "jacobi", "fft"])
def test_a_projection_is_of_degree_one_and_hides_no_number_that_is_not_finite(projection: str) -> None:
    with runtime.using(runtime.Settings(precision="f32")):
        model = model_of((20, 16), (P,) * 4, projection=projection, tolerance=1e-5)
        velocity = some(model)
        for direction in RUNS:
            solve = partial(projected, model, direction=direction)
            expected = solve(velocity)
            for scale in map(np.float32, (2.0**-80, 2.0**80)):
                found = solve(scale * velocity) / scale
                assert_equal_but_for_rounding(found, expected, ulps=64, size=np.abs(expected).max())
            overflowing = np.where(np.arange(20)[:, None] % 2, np.float32(3e38), np.float32(-3e38)) + 0 * velocity
            with np.errstate(all="ignore"):
                assert not np.isfinite(solve(overflowing)).all()


def test_an_estimate_of_the_error_does_not_depend_on_the_unit() -> None:
    with runtime.using(runtime.Settings(precision="f32")):
        model = model_of((36, 20), (P,) * 4, projection="multigrid", most_iterations=1)
        errors = []
        for scale in map(np.float32, (1.0, 2.0**80, 2.0**-80)):
            solves = Solves(model)
            solves.run(scale * some(model))
            errors.append(solves.report().error)
        np.testing.assert_allclose(errors[1:], [errors[0]] * 2, rtol=1e-6)
        assert errors[0] > 0


def adjoint_of_a_sum(model: Smoke) -> tuple[Array, Array]:
    """Project a velocity by sweeps, and find the adjoint of one that is read twice, so that the sub-step adds to it."""
    u = tensor(some(model), requires_grad=True)
    found = Project.apply(model, u)
    (found * some(model, seed=1) + u * some(model, seed=2)).sum().backward()
    assert u.grad is not None
    return found.data, u.grad.data


@pytest.mark.gpu
@pytest.mark.parametrize(("cells", "boundaries", "grid"), CHECKED)
def test_sweeps_are_the_same_on_each_device(cells: Any, boundaries: Any, grid: str) -> None:
    """A GPU has a thread for each cell, the processor a row at a time."""
    for count in (0, 1, 2, 6):
        model = model_of(cells, boundaries, grid=grid, projection="jacobi", sweeps=count)
        found = adjoint_of_a_sum(model)
        with runtime.using(runtime.Settings(precision="f64")):
            expected = adjoint_of_a_sum(model)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(("cells", "boundaries", "grid"), [*CHECKED, ((3, 35), (I, O, P, P), "staggered")])
def test_an_adjoint_within_an_array_is_set_or_added_to(cells: Any, boundaries: Any, grid: str) -> None:
    model = model_of(cells, boundaries, grid=grid, projection="jacobi", sweeps=3)
    given = {"velocity": some(model, seed=1)}
    check_parts_of_arrays(model, Project, adj_project, given, "projected_velocity")
