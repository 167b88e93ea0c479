"""The stability limit is the time step at which an independent NumPy simulation begins to diverge."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from simphys.autograd.errors import InputError
from simphys.rollout import stability
from simphys.rollout.stability import require_stable_step
from simphys.scenefile import from_dict
from simphys.scenefile.section import Fields
from simphys.simulators.mass_spring.model import MassSpring
from simphys.simulators.mass_spring.scene import MassSpringConfig
from simphys.simulators.mass_spring.stability import step_limits

from ...helpers.time_steps import largest_stable_dt

INTEGRATORS = ["semi_implicit_euler", "velocity_verlet"]


class System(NamedTuple):
    """A scene as its model, and its parameters and state as arrays."""

    model: MassSpring
    fields: Fields
    config: MassSpringConfig

    def require_stable(self, dt: float) -> None:
        """Raise InputError if the scene is unstable with this time step."""
        _, params, state = self.config.build()
        require_stable_step(replace(self.model, dt=dt), params, state)


def scene(geometry: dict[str, Any], integrator: str = "semi_implicit_euler", **sections: Any) -> System:
    simulator = {"name": "mass_spring", "integrator": integrator}
    time = {"dt": 1e-6, "steps": 1}
    config = from_dict({"simulator": simulator, "time": time, "geometry": geometry, **sections})
    assert isinstance(config, MassSpringConfig)
    return System(config.build_model(), config.fields, config)


def sheet(integrator: str, **material: Any) -> System:
    geometry = {"lattice": {"shape": [4, 3], "spacing": 0.1}, "pinned_faces": ["y+"]}
    return scene(geometry, integrator, material={"stiffness": 50.0, **material})


def limit(system: System) -> float:
    return largest_stable_dt(*system.config.build())


def forces(system: System, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Spring and dashpot forces, and the ground's normal force."""
    p = system.fields.params
    a, b = system.model.ends.T
    d, u = x[b] - x[a], v[b] - v[a]
    squared = np.maximum(np.sum(d * d, axis=1), 1e-300)
    rate = p["stiffness"] * (1 - p["rest_length"] / np.sqrt(squared)) + p["damping"] * np.sum(u * d, axis=1) / squared
    force = np.zeros_like(x)
    np.add.at(force, a, rate[:, None] * d)
    np.add.at(force, b, -rate[:, None] * d)
    force[:, -1] += p["ground_stiffness"] * np.maximum(0.0, p["ground_height"] - x[:, -1])
    return force


def excursion(system: System, dt: float, steps: int = 1500) -> float:
    """Largest displacement of the nodes, relative to an initial disturbance of 1e-9 m."""
    free = ~system.model.pinned[:, None]
    start = system.fields.state["position"]
    rest = forces(system, start, np.zeros_like(start))
    x = start + 1e-9 * free * np.random.default_rng(1).standard_normal(start.shape)
    v = np.zeros_like(x)
    mass, drag = system.fields.params["mass"][:, None], system.fields.params["drag"][:, None]

    def accelerate(v: np.ndarray) -> np.ndarray:
        return free * (forces(system, x, v) - rest) / mass

    for _ in range(steps):
        if system.model.integrator == "semi_implicit_euler":
            v = np.exp(-drag * dt) * v + dt * accelerate(v)
            x = x + dt * v
        else:
            v = np.exp(-drag * dt / 2) * v
            half = v + dt / 2 * accelerate(v)
            x = x + dt * half
            v = np.exp(-drag * dt / 2) * (half + dt / 2 * accelerate(2 * half - v))
        if not np.abs(x - start).max() < 1e-3:
            return np.inf
    return float(np.abs(x - start).max() / 1e-9)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_one_undamped_mass_on_a_spring_is_limited_by_two_over_its_frequency(integrator: str) -> None:
    anchor = {"node": 0, "point": [0.0], "stiffness": 8.0}
    system = scene({"position": [[1.0]], "anchors": [anchor]}, integrator, material={"mass": 2.0})
    assert limit(system) == pytest.approx(2 / np.sqrt(8.0 / 2.0), rel=2e-4)


def test_one_damped_mass_meets_the_jury_condition_with_equality() -> None:
    anchor = {"node": 0, "point": [0.0], "stiffness": 8.0, "damping": 0.7}
    system = scene({"position": [[1.0]], "anchors": [anchor]}, material={"drag": 0.3})
    dt = limit(system)
    assert 2 + 2 * np.exp(-0.3 * dt) - 2 * 0.7 * dt - 8.0 * dt**2 == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize(
    "material",
    [
        {},
        {"drag": 5.0},
        {"damping": 1.0},
        {"damping": 0.8, "drag": np.linspace(0.0, 60.0, 12), "mass": np.linspace(0.5, 2.0, 12)},
        {"rest_length": 0.05},
    ],
    ids=["undamped", "drag", "dashpots", "uneven", "stretched"],
)
def test_motion_is_bounded_just_below_the_limit_and_blows_up_just_above(integrator: str, material: Any) -> None:
    system = sheet(integrator, **material)
    dt = limit(system)
    assert excursion(system, 0.99 * dt) < 1e3
    assert excursion(system, 1.01 * dt) == np.inf


@pytest.mark.parametrize("damping", [3.0, 30.0])
def test_strong_dashpots_limit_velocity_verlet_sharply(damping: float) -> None:
    """There is no overshoot: the velocity grows without a change of sign."""
    system = sheet("velocity_verlet", damping=damping)
    dt = limit(system)
    assert excursion(system, 0.99 * dt) < 1e3
    assert excursion(system, 1.01 * dt) == np.inf


def test_a_step_just_below_the_limit_of_strong_dashpots_is_taken_and_one_just_above_is_refused() -> None:
    system = sheet("velocity_verlet", damping=30.0)
    dt = limit(system)
    system.require_stable(0.999 * dt)
    with pytest.raises(InputError, match="by dashpots"):
        system.require_stable(1.001 * dt)


@pytest.mark.parametrize("damping", [0.0, 0.5, 2.0, 3.9, 4.1, 8.0])
def test_one_damped_mass_meets_the_closed_form_of_velocity_verlet(damping: float) -> None:
    """A step is stable while h C <= 2 and h^2 K <= 3 + (1 - h C)^2; here K = 8."""
    anchor = {"node": 0, "point": [0.0], "stiffness": 8.0, "damping": damping}
    system = scene({"position": [[1.0]], "anchors": [anchor]}, "velocity_verlet")
    steps = np.geomspace(0.1, 2.0, 100_001)
    unstable = (steps * damping > 2) | (8.0 * steps**2 > 3 + (1 - steps * damping) ** 2)
    assert limit(system) == pytest.approx(steps[np.argmax(unstable)], rel=3e-4)


def test_no_stiffness_and_damping_within_the_bounds_of_velocity_verlet_let_a_motion_grow() -> None:
    """Random symmetric K and C that share no eigenvectors, with uneven drag: of K <= 3 and C <= 2, or K + 2 C <= 4."""
    random = np.random.default_rng(0)

    def draw(n: int, largest: float) -> np.ndarray:
        factor = random.standard_normal((n, random.integers(1, n + 1)))
        product = factor @ factor.T
        return product * largest / np.linalg.eigvalsh(product)[-1]

    growth = []
    for trial in range(2000):
        n, damping = int(random.integers(2, 5)), random.choice([1.0, random.random()]) * 1.999
        K, C = draw(n, 2.999 if trial % 2 else 4 - 2 * damping), draw(n, damping)
        decay = np.diag(np.exp(-random.exponential(size=n) * random.choice([0.0, 0.1, 1.0])))
        x, v = np.split(np.eye(2 * n), 2)
        w = decay @ v
        half = w - (K @ x + C @ w) / 2
        after = x + half
        step = np.vstack([after, decay @ (half - (K @ after + C @ (2 * half - w)) / 2)])
        growth.append(np.abs(np.linalg.eigvals(step)).max())
    assert max(growth) < 1 + 1e-6  # eigenvalues of rank 0 are double, so rounded to 1e-8


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("damping", [0.0, 0.02])
def test_large_systems_agree_with_dense_eigenvalues(
    integrator: str, damping: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    lattice = {"lattice": {"shape": [6, 6], "spacing": 0.1}}
    material = {"stiffness": 50.0, "damping": damping, "drag": 3.0}
    system = scene(lattice, integrator, material=material)
    large = limit(system)
    monkeypatch.setattr(stability, "DENSE", 10**4)
    assert large == pytest.approx(limit(system), rel=4e-3)


def test_a_node_above_the_ground_is_limited_by_the_ground_it_may_fall_on() -> None:
    system = scene({"position": [[0.0, 1.0]]}, environment={"ground": {"height": 0.0, "stiffness": 400.0}})
    assert limit(system) == pytest.approx(2 / 20.0, rel=2e-4)


def test_friction_with_the_ground_shortens_the_step() -> None:
    ground = {"height": 0.5, "stiffness": 400.0, "friction": 1.0}
    system = scene({"position": [[0.0, 0.0]]}, environment={"ground": ground})
    assert limit(system) == pytest.approx(2 / (1.0 * 400.0 * 0.5), rel=2e-4)


@pytest.mark.parametrize("geometry", [{"position": [[0.0]]}, {"position": [[0.0]], "pinned": [0]}])
def test_nothing_limits_a_system_without_forces_or_without_free_nodes(geometry: Any) -> None:
    assert limit(scene(geometry)) == np.inf


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("material", [{}, {"drag": 5.0, "damping": 1.0}], ids=["undamped", "damped"])
def test_check_dt_refuses_only_time_steps_beyond_the_limit(integrator: str, material: Any) -> None:
    system = sheet(integrator, **material)
    largest = limit(system)
    system.require_stable(0.01 * largest)
    system.require_stable(0.999 * largest)
    with pytest.raises(InputError) as caught:
        system.require_stable(1.001 * largest)
    assert caught.value.source == "time.dt"
    assert f"({integrator})" in caught.value.constraint
    assert f"{1.001 * largest:g}" in str(caught.value)
    assert "Set time.dt to" in caught.value.remedy


def test_an_ordinary_step_is_accepted_without_any_tangent(monkeypatch: pytest.MonkeyPatch) -> None:
    system = sheet("semi_implicit_euler")
    small = 0.5 * limit(system)
    monkeypatch.setattr(stability, "find_largest_dt", None)
    system.require_stable(small)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("rest_length", [0.2, 1.0, 10.0])
def test_what_is_accepted_without_a_tangent_is_below_the_limit(
    rest_length: float, integrator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compressed springs push to the side, however short they are."""
    system = sheet(integrator, rest_length=rest_length, damping=0.1, drag=0.3)
    found, relaxed = limit(system), limit(sheet(integrator, damping=0.1, drag=0.3))
    monkeypatch.setattr(stability, "find_largest_dt", None)
    accepted = 0.0
    for dt in np.geomspace(1e-4, 1.0, 200):
        with suppress(TypeError, InputError):  # the tangent would be needed
            system.require_stable(float(dt))
            accepted = float(dt)
    assert 0.3 * relaxed < accepted < found


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("damping", [[-0.3, -0.2], [-0.3, 0.3]], ids=["all negative", "of no sum"])
def test_dashpots_below_zero_bound_the_step_like_those_above_it(integrator: str, damping: list[float]) -> None:
    """A search may try them; the norm of a dashpot's matrix does not know its sign."""
    anchor = {"node": 0, "point": [0.0], "stiffness": 9.0}
    geometry = {"position": [[1.0], [2.2]], "springs": [[0, 1]], "anchors": [anchor]}
    system = scene(geometry, integrator, material={"stiffness": 5.0})

    def limits(own: list[float]) -> list[float]:
        params = {**system.fields.params, "damping": np.array(own)}
        return [each.dt for each in step_limits(system.model, params, system.fields.state)]

    assert limits(damping) == limits([abs(each) for each in damping])
