"""Health of gradients: growth rates against closed forms, usable horizons, vanishing gradients, and the first NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import ops, tensor
from simphys.autograd.errors import InputError
from simphys.diagnose.health import Health, health
from simphys.rollout import Trajectory

from ...helpers import tanks
from ...helpers.tanks import Tanks
from ...rollout import pendulums
from ...simulators.mass_spring.systems import springs_only

EPS = 2.0**-52


# --- rates


def oscillator_rate(stiffness: float, damping: float) -> float:
    """Growth rate of x'' = -c x' - k x, of tangents and adjoints: the largest real part of r with r^2 + c r + k = 0."""
    return float(np.roots([1.0, damping, stiffness]).real.max())


def held_by_a_spring(**held: Any) -> tuple[Any, ...]:
    """Make a unit mass on a spring of 20 N/m to a pinned node, in one dimension."""
    return springs_only([[0, 1]], [[0.3], [0.0]], pinned=[1], stiffness=20.0, dt=1e-3, **held)


@pytest.mark.parametrize("damping", [0.0, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("of", ["damping", "drag"])
def test_adjoint_and_tangent_of_an_oscillator_grow_at_its_rate(damping: float, of: str) -> None:
    """Check -c/2 below critical damping, and the slower of two rates above, as with c = 10 for k = 20."""
    model, params, state = held_by_a_spring(**{of: damping})
    found = health(model, params, state, steps=20_000, loss=lambda trajectory: trajectory.position[-1, 0].sum())
    expected = oscillator_rate(20.0, damping)
    # Semi-implicit Euler errs by c^2 dt / 4 to first order; the fit of a line to an oscillation by less than 1e-3.
    for rate in (found.rate, found.tangent_rate):
        assert rate is not None
        assert rate.value == pytest.approx(expected, abs=1e-3 + damping**2 * 1e-3 / 4)
        assert rate.begin == pytest.approx(5.0)
        assert rate.end == pytest.approx(20.0)
        assert not rate.exponential
    assert found.noise_step is None
    assert found.usable_steps == found.steps
    assert found.expected_steps is None


def inverted(*, steps: int, stiffness: float = 4.0, damping: float = 0.5, dt: float = 0.01) -> tuple[Any, ...]:
    """Make a pendulum at rest at the top; return it with the largest eigenvalue of a step and its left eigenvector."""
    model = pendulums.Pendulums(n=1, dt=dt)
    params = pendulums.Params(tensor([-stiffness]), tensor(damping))
    state = pendulums.State(tensor([0.0]), tensor([0.0]))
    step = np.array([[1 + dt**2 * stiffness, dt * (1 - damping * dt)], [dt * stiffness, 1 - damping * dt]])
    values, vectors = np.linalg.eig(step.T)
    largest = int(values.argmax())
    return model, params, state, values[largest], vectors[:, largest]


def along(vector: np.ndarray) -> Any:
    return lambda trajectory: trajectory.final.angle.sum() * vector[0] + trajectory.final.rate.sum() * vector[1]


def test_an_inverted_pendulum_has_the_exponent_of_its_closed_form() -> None:
    model, params, state, growth, vector = inverted(steps=2000)
    found = health(model, params, state, steps=2000, loss=along(vector))
    assert found.rate is not None and found.tangent_rate is not None
    assert found.rate.value == pytest.approx(np.log(growth) / model.dt, rel=1e-10)
    assert found.tangent_rate.value == pytest.approx(np.log(growth) / model.dt, rel=1e-10)
    assert found.rate.value == pytest.approx(oscillator_rate(-4.0, 0.5), rel=0.01)  # the step's error is of first order
    undamped = inverted(steps=2000, damping=0.0, dt=1e-3)
    rate = health(*undamped[:3], steps=8000).rate
    assert rate is not None
    assert rate.value == pytest.approx(np.sqrt(4.0), rel=1e-5)


# --- horizons


def grown(log_growth: np.ndarray, *, eps: float = EPS, adjoint: np.ndarray | None = None) -> Health:
    """Make the report for such a growth of one component."""
    return Health(
        dt=0.1,
        steps=len(log_growth) - 1,
        eps=eps,
        loss=1.0,
        adjoint={"level": np.exp(log_growth)[:, None] if adjoint is None else adjoint},
        moving={"level": np.array([True])},
        log_growth=log_growth,
        rate=None,
        log_tangent_growth=None,
        tangent_rate=None,
        sensitivities=(),
        fault=None,
    )


def test_the_usable_horizon_is_exact_to_the_step() -> None:
    model, params, state, growth, vector = inverted(steps=2500)
    last = int(np.log(1 / EPS) / np.log(growth))  # growth^last <= 1/eps < growth^(last + 1)
    found = health(model, params, state, steps=2500, loss=along(vector))
    assert 1500 < last < 2500
    assert found.noise_step == last + 1
    assert found.usable_steps == last
    assert found.expected_steps is None  # nothing to extrapolate
    shorter = health(model, params, state, steps=500, loss=along(vector))
    assert (shorter.noise_step, shorter.usable_steps) == (None, 500)
    assert shorter.expected_steps == pytest.approx(last, abs=1)


def test_in_single_precision_it_is_shorter() -> None:
    found = grown(0.5 * np.arange(100, -1, -1.0), eps=2.0**-23)
    assert found.noise_step == int(np.log(2**23) / 0.5) + 1


def test_growth_is_relative_to_the_derivatives_that_have_entered() -> None:
    """A loss of many times adds to the adjoint on its way; that is no growth of rounding errors."""
    model, params, state, _, _ = inverted(steps=400, stiffness=-4.0, damping=0.0)  # hanging

    def loss(trajectory: Trajectory) -> Any:
        return (trajectory.angle * 1e20 ** np.linspace(1, 0, 401)[:, None]).sum()  # 1e20 times as heavy at the start

    found = health(model, params, state, steps=400, loss=loss)
    assert np.ptp(np.log(np.abs(found.adjoint["angle"]))) > np.log(1 / EPS)
    assert found.noise_step is None


# --- vanishing gradients


def test_parameters_without_effect_are_named() -> None:
    model = pendulums.Pendulums(n=2, dt=0.05)
    params = pendulums.Params(tensor([2.0, 3.0]), tensor(0.3))
    state = pendulums.State(tensor([1.0, 1.2]), tensor([0.0, 0.0]))
    found = health(model, params, state, steps=40, loss=lambda t: ((t.angle[:, 0] - 0.1) ** 2).sum())
    by_name = {each.name: each for each in found.sensitivities}
    assert (by_name["stiffness"].entries, by_name["stiffness"].vanishing) == (2, 1)  # the loss depends on one pendulum
    assert (by_name["damping"].vanishing, by_name["angle"].vanishing) == (0, 1)
    assert found.vanishing == ()


def test_sensitivities_below_the_rounding_of_the_loss_vanish() -> None:
    """Once exp(-c t/2) is below eps, the start has no effect; the push, which goes on, still has one."""
    model = pendulums.Pendulums(n=1, dt=0.01)
    params = pendulums.Params(tensor([25.0]), tensor(8.0))
    state = pendulums.State(tensor([0.5]), tensor([0.1]))
    push = tensor(np.full((1500, 1), 2.0))
    loss = lambda t: ((t.final.angle - 1.0) ** 2).sum()  # noqa: E731
    found = health(model, params, state, steps=1500, loss=loss, control=push)
    assert found.rate is not None and found.rate.value == pytest.approx(-4.0, rel=0.05)
    assert found.vanishing == ("damping", "angle", "rate")  # at rest in the end, damping has no effect either
    assert {each.name for each in found.sensitivities if each.of_start} == {"angle", "rate"}
    early = health(model, params, state, steps=150, loss=loss, control=tensor(np.full((150, 1), 2.0)))
    assert early.vanishing == ()


def test_a_sensitivity_is_relative_to_the_loss() -> None:
    model, params, state, _, _ = inverted(steps=1)
    params = params.replace(stiffness=tensor([3.0]))
    state = pendulums.State(tensor([0.4]), tensor([0.2]))
    found = health(model, params, state, steps=1, loss=lambda t: (t.final.rate**2).sum())
    rate = 0.2 + model.dt * (-3.0 * np.sin(0.4) - 0.5 * 0.2)
    sensitivity = next(each for each in found.sensitivities if each.name == "stiffness")
    assert sensitivity.largest == pytest.approx(2 / rate * model.dt * 3.0 * np.sin(0.4), rel=1e-12)


def test_components_that_change_at_any_time_count_as_moving() -> None:
    """One of two flying nodes hits the ground, which reverses its velocity; the velocity of the other never changes."""
    model, params, state = springs_only([], [[0.155], [1.0]], velocity=[[-1.0], [-1.0]], ground_stiffness=400.0)
    found = health(model, params, state, steps=40)
    assert found.moving["position"].tolist() == [[True], [True]]
    assert found.moving["velocity"].tolist() == [[True], [False]]


# --- the first NaN


def draining(levels: list[float], hole: float = 1.0) -> tuple[Any, Any, Any]:
    return Tanks(len(levels)), tanks.Params(tensor(hole)), tanks.State(tensor(levels))


def test_a_nan_of_the_motion_is_reported_with_step_and_sub_step_and_the_rest_is_about_the_motion_before() -> None:
    model, params, state = draining([4.0, 1.0])
    with np.errstate(invalid="ignore"):
        levels = [np.array([4.0, 1.0])]
        while np.isfinite(levels[-1]).all():
            levels.append(levels[-1] - model.dt * np.sqrt(levels[-1]))
    found = health(model, params, state, steps=60, loss=lambda t: t.level[60].sum())
    fault = found.fault
    assert fault is not None
    assert (fault.direction, fault.step, fault.where, fault.function) == (
        "forward",
        len(levels) - 1,
        "level[1]",
        "Sqrt",
    )
    assert "Sqrt, forward: output 0 (shape (2,)) is nan at index (1,)." in fault.message
    assert found.steps == len(levels) - 2
    assert len(found.adjoint["level"]) == found.steps + 1
    assert np.isfinite(found.adjoint["level"]).all()


def test_a_motion_that_breaks_in_its_first_step_has_no_usable_horizon() -> None:
    found = health(*draining([1.0, -1.0]), steps=10)
    assert found.fault is not None
    assert (found.fault.step, found.fault.function, found.usable_steps) == (1, "Sqrt", 0)


def test_a_start_that_is_not_finite_is_reported_as_such() -> None:
    found = health(*draining([1.0, np.nan]), steps=10)
    assert found.fault is not None
    assert (found.fault.step, found.fault.where, found.fault.function) == (0, "level[1]", None)


def test_an_infinite_adjoint_is_reported_with_step_and_sub_step() -> None:
    """An empty tank stays empty, but its outflow has no derivative."""
    found = health(*draining([4.0, 0.0]), steps=10)
    fault = found.fault
    assert fault is not None
    assert (fault.direction, fault.step, fault.where, fault.function) == ("backward", 10, "level[1]", "Sqrt")
    assert np.isinf(fault.value)
    assert found.usable_steps == 0


def test_only_steps_after_an_infinite_adjoint_count_as_usable() -> None:
    adjoint = np.where(np.arange(101) > 37, 1.0, np.inf)[:, None]
    found = grown(np.zeros(101), adjoint=adjoint)
    assert found.usable_steps == 100 - 38


def test_a_parameters_gradient_alone_may_be_infinite() -> None:
    found = health(*draining([4.0, 1.0], hole=0.0), steps=10, loss=lambda t: t.level[6].sum())
    fault = found.fault
    assert fault is not None
    assert (fault.direction, fault.where, fault.function) == ("backward", "hole", "Sqrt")
    assert fault.step == 10  # though the loss depends on step 6: a derivative of zero times infinity is NaN
    assert found.usable_steps == 10  # the adjoint of the state is finite


def test_a_loss_without_a_derivative_is_reported_as_such() -> None:
    model, params, state = draining([4.0, 1.0])
    found = health(model, params, state, steps=5, loss=lambda t: ops.sqrt((t.level[0] - t.level.data[0]) ** 2).sum())
    assert found.fault is not None
    assert (found.fault.direction, found.fault.step, found.fault.function) == ("loss", None, "Sqrt")


def test_a_sound_motion_has_no_fault_and_without_a_jvp_no_tangent() -> None:
    found = health(*draining([4.0, 9.0]), steps=20)
    assert found.fault is None
    assert found.log_tangent_growth is None
    assert found.tangent_rate is None


# --- mistakes


def test_the_loss_must_depend_on_the_trajectory() -> None:
    with pytest.raises(InputError, match="health: the loss must depend on the trajectory"):
        health(*draining([4.0]), steps=3, loss=lambda t: tensor(1.0))


def test_batches_are_refused() -> None:
    model, params, _ = draining([4.0])
    with pytest.raises(InputError, match=r"health, level: there is no batch axis; found \[2, 1\]"):
        health(model, params, tanks.State(tensor([[4.0], [1.0]])), steps=3)


def test_the_given_tensors_stay_as_they_are() -> None:
    model, params, state = draining([4.0])
    state.level.requires_grad_()
    health(model, params, state, steps=3)
    assert state.level.grad is None
    assert not params.hole.requires_grad
