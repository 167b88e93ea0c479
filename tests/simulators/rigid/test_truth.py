"""Contacts against closed forms: values, and derivatives by differences of the closed form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from simphys.autograd import Tensor, grad, tensor
from simphys.rollout import rollout
from simphys.simulators.rigid import Box, Params, Plane, RigidBodies, Sphere, State

Array = np.ndarray[Any, Any]
Values = Mapping[str, Any]

R, M, J = 0.2, 1.5, 0.03
"""Radius, mass and moment of inertia of the ball, which is a disc."""
G = 9.81


def world(dt: float, *, law: str = "impulse", dim: int = 2) -> RigidBodies:
    """Return a floor at height 0, two balls and a box; only the balls touch each other."""
    box, up = Box((0.3, 0.1, 0.2)[:dim]), (0.0, 1.0, 0.0)[:dim]
    shapes = ((Sphere(R),), (Sphere(0.1),), (box,))
    return RigidBodies(dim, dt, shapes, (Plane(up),), apart=((0, 2), (1, 2)), law=law)


def start(model: RigidBodies, given: Values) -> tuple[Params, State, dict[str, Tensor]]:
    """Replace default values by named ones [n, ...]; by default all bodies are far apart and at rest, without gravity.

    Also return the Tensors of these values, which require a gradient.
    """
    n, dim, spins = model.bodies, model.dim, model.spins
    defaults: dict[str, Any] = {name: np.zeros(shape) for name, shape in model.param_shapes().items()}
    defaults |= {"mass": [M, 0.5, 1.0], "inertia": np.full((n, spins), J), "restitution": np.zeros(n)}
    state = {
        "position": np.array([(0, R, 0), (50, 5, 0), (100, 5, 0)], float)[:, :dim],
        "orientation": np.zeros((n, 1)) if dim == 2 else np.tile((1.0, 0, 0, 0), (n, 1)),
        "velocity": np.zeros((n, dim)),
        "angular_velocity": np.zeros((n, spins)),
    }
    leaves = {name: tensor(np.array(values, float), requires_grad=True) for name, values in given.items()}
    filled = {name: leaves.get(name, tensor(np.array(values, float))) for name, values in (defaults | state).items()}
    return (
        Params(**{name: filled[name] for name in Params.names()}),
        State(**{name: filled[name] for name in State.names()}),
        leaves,
    )


def move(model: RigidBodies, given: Values, time: float) -> tuple[State, dict[str, Tensor]]:
    params, state, leaves = start(model, given)
    return rollout(model, params, state, steps=round(time / model.dt)).final, leaves


def derivatives(result: Tensor, leaves: Mapping[str, Tensor]) -> dict[str, Array]:
    return {
        name: each.data
        for name, each in zip(leaves, grad(result, tuple(leaves.values()), retain_graph=True), strict=True)
    }


def slopes(of: Callable[..., float], inputs: tuple[float, ...]) -> Array:
    """Differentiate a closed form by central differences."""
    unit = 1e-6 * np.eye(len(inputs))
    return np.array([(of(*(inputs + e)) - of(*(inputs - e))) / 2e-6 for e in unit])


# --- a ball hits the floor obliquely, with spin; no gravity, so that every step is exact


def bounce(y: float, v_x: float, v_y: float, w: float, mu: float, e: float, *, T: float) -> tuple[float, float, float]:
    """Return x, y and the spin at time T of a ball that starts at x = 0; friction slides, or suffices to stick."""
    t = (y - R) / -v_y
    slip = v_x + R * w
    impulse = min(mu * (1 + e) * M * -v_y, abs(slip) / (1 / M + R * R / J)) * -np.sign(slip)
    new = v_x + impulse / M
    return v_x * t + new * (T - t), R - e * v_y * (T - t), w + R * impulse / J


@pytest.mark.parametrize(("mu", "what"), [(0.1, "slides"), (0.9, "sticks")])
def test_an_oblique_bounce_is_exact(mu: float, what: str) -> None:
    """Final position and spin, and their derivatives by start, friction and restitution, are right to rounding."""
    inputs, T = (0.53, 2.0, -1.7, 3.0, mu, 0.6), 0.4
    y, v_x, v_y, w, _, e = inputs
    given = {
        "position": [(0, y), (50, 5), (100, 5)],
        "velocity": [(v_x, v_y), (0, 0), (0, 0)],
        "angular_velocity": [[w], [0], [0]],
        "friction": [mu, 0, 0],
        "restitution": [e, 0, 0],
    }
    final, leaves = move(world(0.05), given, T)
    results = final.position[0, 0], final.position[0, 1], final.angular_velocity[0, 0]
    slip_after = final.velocity.data[0, 0] + R * results[2].data
    assert (abs(slip_after) < 1e-12) == (what == "sticks")
    for number, result in enumerate(results):
        np.testing.assert_allclose(result.data, bounce(*inputs, T=T)[number], rtol=1e-12)
        by = {
            name: each.data
            for name, each in zip(leaves, grad(result, tuple(leaves.values()), retain_graph=True), strict=True)
        }
        found = [
            by["position"][0, 1],
            *by["velocity"][0],
            by["angular_velocity"][0, 0],
            by["friction"][0],
            by["restitution"][0],
        ]
        expected = slopes(lambda *x, number=number: bounce(*x, T=T)[number], inputs)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_two_balls_that_meet_head_on_are_exact() -> None:
    """Final positions and their derivatives are right to rounding."""

    def places(x: float, v: float, u: float, m: float, e: float) -> float:
        """Return the first ball's position at time 0.8; it starts at 0 with v, the second at x with velocity u."""
        t = (x - R - 0.1) / (v - u)
        return v * t + (v - (1 + e) * m / (M + m) * (v - u)) * (0.8 - t)

    inputs = (0.9, 2.0, -0.5, 0.5, 0.7)
    x, v, u, m, _ = inputs
    given = {
        "position": [(0, 3), (x, 3), (100, 5)],
        "velocity": [(v, 0), (u, 0), (0, 0)],
        "mass": [M, m, 1],
        "restitution": [0.8, 0.6, 0],
    }
    final, leaves = move(world(0.05), given, 0.8)
    np.testing.assert_allclose(final.position.data[0, 0], places(*inputs), rtol=1e-12)
    by = {
        name: each.data for name, each in zip(leaves, grad(final.position[0, 0], tuple(leaves.values())), strict=True)
    }
    found = [by["position"][1, 0], by["velocity"][0, 0], by["velocity"][1, 0], by["mass"][1], 2 * by["restitution"][0]]
    np.testing.assert_allclose(found, slopes(places, inputs), rtol=1e-8)


def rotation_matrix(axis: Array, angle: float) -> Array:
    """Return the rotation matrix about a unit vector (Rodrigues)."""
    across = np.cross(np.eye(3), axis)
    return np.asarray(np.eye(3) + np.sin(angle) * across + (1 - np.cos(angle)) * across @ across)


def test_a_rotating_box_in_space_rebounds_by_its_corner_at_the_time_of_impact() -> None:
    """It spins about its third axis, which is tilted; the floor is smooth.

    Normal, arm and inverse inertia are those at the time of impact: speed and derivatives err by O(h^2), as the free
    rotation before the impact does.
    """
    half, J0, T = np.array([0.3, 0.1, 0.2]), np.array([0.12, 0.2, 0.08]), 0.3
    q = np.array([0.9, 0.25, -0.3, 0.2])
    w_, u = q[0], q[1:]
    R0 = np.eye(3) + 2 * (w_ * np.cross(np.eye(3), u) + np.outer(u, u) - (u @ u) * np.eye(3)) / (q @ q)
    axis, up = R0[:, 2], np.array([0.0, 1.0, 0.0])
    corners = np.array(list(itertools.product((-1, 1), repeat=3))) * half

    def rebound_speed(y: float, v: float, w: float, e: float, J: float) -> float:
        """Return the speed after the impact."""

        def lowest(t: float) -> tuple[float, Array, Array]:
            R = rotation_matrix(axis, w * t) @ R0
            arm = R @ corners[int(np.argmin((corners @ R.T)[:, 1]))]
            return y + v * t + arm[1], arm, R

        t = brentq(lambda t: lowest(t)[0], 0.0, T, xtol=1e-15)
        _, arm, R = lowest(t)
        m = np.cross(arm, up)
        turns = R @ (R.T @ m / [J, *J0[1:]])
        return float(v - (1 + e) * (v + m @ (w * axis)) / (1 + m @ turns))  # for mass 1

    inputs = (0.45, -1.5, 2.0, 0.9, J0[0])
    y, v, w, e, _ = inputs
    given = {
        "position": [(0, 5, 0), (50, 5, 0), (100, y, 0)],
        "orientation": [(1, 0, 0, 0), (1, 0, 0, 0), q],
        "velocity": [(0, 0, 0), (0, 0, 0), (0, v, 0)],
        "angular_velocity": [(0, 0, 0), (0, 0, 0), w * axis],
        "restitution": [0, 0, e],
        "inertia": [(1, 1, 1), (1, 1, 1), J0],
    }
    exact = np.array([rebound_speed(*inputs), *slopes(rebound_speed, inputs)])

    def error(dt: float) -> Array:
        model = RigidBodies(3, dt, ((), (), (Box(tuple(half)),)), (Plane((0.0, 1.0, 0.0)),))
        final, leaves = move(model, given, T)
        by = derivatives(final.velocity[2, 1], leaves)
        found = [final.velocity.data[2, 1], by["position"][2, 1], by["velocity"][2, 1]]
        found += [by["angular_velocity"][2] @ axis, by["restitution"][2], by["inertia"][2, 0]]
        return abs(found / exact - 1)

    coarse, fine = error(0.01), error(0.005)
    assert fine.max() < 1e-4
    np.testing.assert_allclose(coarse / fine, 4, rtol=0.1)


def test_tumbling_after_an_impact_depends_on_its_time() -> None:
    """A box spins about one of its axes until its corner hits the floor; then it feels a gyroscopic torque.

    The final spin depends on the initial height only through the time of impact; the derivative is tested.
    """
    half, J0, T = np.array([0.3, 0.1, 0.2]), np.array([0.12, 0.2, 0.08]), 0.5
    v, e, spin, y = -1.5, 0.9, 4.0, 0.45
    q = np.array([0.9, 0.25, -0.3, 0.2])
    q /= np.linalg.norm(q)
    R0 = np.eye(3) + 2 * (q[0] * np.cross(np.eye(3), q[1:]) + np.outer(q[1:], q[1:]) - (q[1:] @ q[1:]) * np.eye(3))
    corners = np.array(list(itertools.product((-1, 1), repeat=3))) * half

    def final_spin(y: float) -> float:
        def lowest(t: float) -> tuple[float, Array, Array]:
            R = rotation_matrix(R0[:, 2], spin * t) @ R0
            arm = R @ corners[int(np.argmin((corners @ R.T)[:, 1]))]
            return y + v * t + arm[1], arm, R

        t = brentq(lambda t: lowest(t)[0], 0.0, T, xtol=1e-15)
        _, arm, R = lowest(t)
        m, w = np.cross(arm, (0.0, 1.0, 0.0)), spin * R0[:, 2]
        turns = R @ (R.T @ m / J0)
        w = R.T @ (w - (1 + e) * (v + m @ w) / (1 + m @ turns) * turns)  # for mass 1

        def rate(_: float, state: Array) -> Array:
            w, R = state[:3], state[3:].reshape(3, 3)
            return np.concatenate([-np.cross(w, J0 * w) / J0, (R @ np.cross(np.eye(3), w)).reshape(-1)])

        found = solve_ivp(rate, (0, T - t), [*w, *R.reshape(-1)], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
        return float((found[3:].reshape(3, 3) @ found[:3])[0])

    given = {
        "position": [(0, 5, 0), (50, 5, 0), (100, y, 0)],
        "orientation": [(1, 0, 0, 0), (1, 0, 0, 0), q],
        "velocity": [(0, 0, 0), (0, 0, 0), (0, v, 0)],
        "angular_velocity": [(0, 0, 0), (0, 0, 0), spin * R0[:, 2]],
        "restitution": [0, 0, e],
        "inertia": [(1, 1, 1), (1, 1, 1), J0],
    }

    def errors(dt: float) -> Array:
        shapes = ((), (), (Box(tuple(half)),))
        model = RigidBodies(3, dt, shapes, (Plane((0.0, 1.0, 0.0)),))
        final, leaves = move(model, given, T)
        result = final.angular_velocity[2, 0]
        by_y = derivatives(result, leaves)["position"][2, 1]
        return np.array([result.data - final_spin(y), by_y - slopes(final_spin, (y,))[0]])

    coarse, fine = errors(0.005), errors(0.0025)
    assert abs(fine[0]) < 0.6 * abs(coarse[0]) and abs(fine[0]) < 0.01
    assert max(abs(coarse[1]), abs(fine[1])) < 0.005 * abs(slopes(final_spin, (y,))[0])


# --- with gravity, semi-implicit Euler has errors of O(h): half as large for half the step


def check_halves(of: Callable[[float], Array], expected: Array) -> None:
    """Check that errors for steps of 0.005 are at most half of those for steps of 0.01."""
    coarse, fine = [of(dt) - expected for dt in (0.01, 0.005)]
    assert (abs(fine) < 0.55 * abs(coarse)).all()


def test_a_block_slides_until_friction_stops_it() -> None:
    """It slides v^2 / (2 mu g); derivatives are by v and by mu."""
    v, mu = 2.0, 0.5

    def sliding_distance(dt: float) -> Array:
        given = {
            "position": [(0, R), (50, 5), (100, 0.1)],
            "velocity": [(0, 0), (0, 0), (v, 0)],
            "gravity": (0, -G),
            "friction": [0, 0, mu],
        }
        final, leaves = move(world(dt), given, 0.6)
        np.testing.assert_allclose(final.velocity.data[2], 0, atol=1e-9)
        by_v, by_mu = grad(final.position[2, 0], (leaves["velocity"], leaves["friction"]))
        return np.array([final.position.data[2, 0] - 100, by_v.data[2, 0], by_mu.data[2]])

    for dt in (0.01, 0.0025):  # derivatives depend on where in a step it stops, so errors are not halved
        errors = sliding_distance(dt) - [v * v / (2 * mu * G), v / (mu * G), -v * v / (2 * mu * mu * G)]
        assert abs(errors).max() < 1.7 * dt


def test_a_ball_dropped_from_higher_is_higher_afterwards() -> None:
    """It arrives later, but faster; derivatives of its height are by the initial height and by restitution.

    Heights are such that the impact is at the same fraction of a long and of a short step.
    """
    e, T = 0.8, 0.8

    def height(y: float, e: float) -> float:
        t = np.sqrt(2 * (y - R) / G)
        return float(R + e * G * t * (T - t) - G * (T - t) ** 2 / 2)

    def error(dt: float) -> Array:
        falls = round(0.4 / dt)
        y = R + G * dt * dt * (falls * (falls - 1) / 2 + 0.3 * falls)
        given = {"position": [(0, y), (50, 5), (100, 5)], "gravity": (0, -G), "restitution": [e, 0, 0]}
        final, leaves = move(world(dt), given, T)
        by_y, by_e = grad(final.position[0, 1], (leaves["position"], leaves["restitution"]))
        found = np.array([final.position.data[0, 1], by_y.data[0, 1], by_e.data[0]])
        return found - [height(y, e), *slopes(height, (y, e))]

    check_halves(error, np.zeros(3))


def test_a_disc_that_slides_rolls_with_two_thirds_of_its_speed() -> None:
    """The result does not depend on friction: that derivative is 0, and the derivative by the speed 2/3."""
    given = {"velocity": [(3.0, 0), (0, 0), (0, 0)], "gravity": (0, -G), "friction": [0.4, 0, 0]}
    final, leaves = move(world(0.01), given, 0.6)
    np.testing.assert_allclose(final.velocity.data[0], (2.0, 0), atol=1e-12)
    np.testing.assert_allclose(final.angular_velocity.data[0], -2.0 / R, rtol=1e-12)
    by_v, by_mu = grad(final.velocity[0, 0], (leaves["velocity"], leaves["friction"]))
    np.testing.assert_allclose(by_v.data[0, 0], 2 / 3, rtol=1e-11)
    np.testing.assert_allclose(by_mu.data[0], 0, atol=1e-11)


def test_a_sphere_that_slides_rolls_with_five_sevenths_of_its_speed() -> None:
    """This holds in any direction of the floor; spin about the vertical is conserved."""
    model, v = world(0.01, dim=3), np.array([2.0, 0.0, -1.5])
    given = {
        "inertia": [[0.4 * M * R * R] * 3, [1] * 3, [1] * 3],
        "velocity": [v, (0, 0, 0), (0, 0, 0)],
        "angular_velocity": [(0, 0.7, 0), (0, 0, 0), (0, 0, 0)],
        "gravity": (0, -G, 0),
        "friction": [0.4, 0, 0],
    }
    final, _ = move(model, given, 0.6)
    np.testing.assert_allclose(final.velocity.data[0], 5 / 7 * v, atol=1e-9)
    np.testing.assert_allclose(final.angular_velocity.data[0], (5 / 7 * v[2] / R, 0.7, -5 / 7 * v[0] / R), atol=1e-8)


# --- the compliant law


def test_a_compliant_floor_sends_a_ball_back_after_half_a_period() -> None:
    """Without damping it returns as fast, pi sqrt(m/k) later, and derivatives of its height follow."""
    T = 0.6

    def height(v: float, k: float, m: float) -> float:
        return float(R + v * (T - (0.5 - R) / v - np.pi * np.sqrt(m / k)))

    inputs = (1.2, M * (np.pi / 0.1) ** 2, M)  # contact lasts 0.1 s, a whole number of steps

    def error(dt: float) -> Array:
        given = {
            "position": [(0, 0.5), (50, 5), (100, 5)],
            "velocity": [(0, -inputs[0]), (0, 0), (0, 0)],
            "mass": [M, 1, 1],
            "contact_stiffness": inputs[1],
        }
        final, leaves = move(world(dt, law="compliant"), given, T)
        by_v, by_m, by_k = grad(final.position[0, 1], (leaves["velocity"], leaves["mass"], leaves["contact_stiffness"]))
        slope = slopes(height, inputs)
        found = np.array([final.position.data[0, 1], -by_v.data[0, 1], by_k.data, by_m.data[0]])
        return (found - [height(*inputs), *slope]) / [1, *slope]

    coarse, fine = error(0.002), error(0.0005)  # in both it begins after two thirds of a step
    assert (abs(fine[[0, 2, 3]]) < 0.3 * abs(coarse[[0, 2, 3]])).all()
    assert abs(fine).max() < 0.1
    assert abs(fine[1]) < 0.01  # also O(h), with a factor that depends on where in a step the contact begins


def test_damping_of_a_compliant_floor_reduces_the_speed_as_predicted() -> None:
    """It rebounds at e v, where c v - ln(1 + c v) is equal for v and -e v; derivatives are by v and by c.

    There are 700 steps per contact: the derivative by v has an O(h) error that depends on where the contact begins.
    """

    def leaves_with(v: float, c: float) -> float:
        def G(speed: float) -> float:
            return c * speed - np.log1p(c * speed)

        return float(brentq(lambda u: G(v) - G(-u), 1e-3, v, xtol=1e-14))

    inputs = (1.2, 0.3)
    given = {
        "position": [(0, 0.5), (50, 5), (100, 5)],
        "velocity": [(0, -inputs[0]), (0, 0), (0, 0)],
        "contact_stiffness": 2000.0,
        "contact_damping": inputs[1],
    }
    final, leaves = move(world(0.000125, law="compliant"), given, 0.6)
    by_v, by_c = grad(final.velocity[0, 1], (leaves["velocity"], leaves["contact_damping"]))
    np.testing.assert_allclose(final.velocity.data[0, 1], leaves_with(*inputs), rtol=1e-5)
    np.testing.assert_allclose((-by_v.data[0, 1], by_c.data), slopes(leaves_with, inputs), rtol=0.02)
