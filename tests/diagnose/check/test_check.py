"""Certificates of a simulator: they pass if everything is right, and name the error otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Function, Tensor, runtime
from simphys.autograd.errors import InputError
from simphys.diagnose.check import Certificate, Statement, check, compare_modes, modes
from simphys.rollout import BlowUp
from simphys.rollout.run import Sweep
from simphys.rollout.schedule import Store
from simphys.simulator import Array, Arrays, Rows

from ...rollout.pendulums import Params, PendulumEngine, Pendulums, State, system

STEPS = 20
LEAVES = ["stiffness", "damping", "angle", "rate", "control"]


def wrong(certificate: Certificate) -> list[str]:
    assert certificate.passed == all(statement.passed for statement in certificate.statements)
    return [statement.title for statement in certificate.statements if not statement.passed]


def statements(certificate: Certificate, name: str) -> list[str]:
    return [statement.claim for statement in certificate.statements if statement.name == name]


@dataclass(frozen=True)
class Changed(Pendulums):
    """Pendulums with another engine."""

    engine_class: Any = PendulumEngine

    def engine(self, params: Arrays, control: Array | None, **options: Any) -> Any:
        return self.engine_class(self, params, control, **options)


def certified(engine_class: Any = PendulumEngine, *, how: Any = check, **options: Any) -> Certificate:
    _, params, state, control = system(steps=STEPS)
    return how(Changed(engine_class=engine_class), params, state, steps=STEPS, control=control, **options)


def test_every_parameter_state_field_and_control_has_every_statement() -> None:
    told: list[Statement] = []
    found = certified(on_statement=told.append)
    assert wrong(found) == [] and told == list(found.statements) and found.findings == ()
    ways = ["nested = fused", "step = fused", "deterministic = fused", "segments = stored", "binomial = stored"]
    ways += ["batch = single", "shared = sum"]
    assert statements(found, "loss") == ways
    for name in LEAVES:
        assert statements(found, name) == [*ways, "adjoint = finite difference", "tangent = adjoint"]


def test_recomputation_within_a_budget_agrees_to_the_last_bit() -> None:
    statements = [
        statement
        for statement in certified().statements
        if statement.claim in ("segments = stored", "binomial = stored")
    ]
    assert len(statements) == 12 and {(statement.error, statement.tolerance) for statement in statements} == {
        (0.0, 0.0)
    }


def test_a_custom_loss_may_depend_on_every_state() -> None:
    found = certified(loss=lambda trajectory: (trajectory.angle * trajectory.rate).sum() ** 2)
    assert wrong(found) == []


def test_a_case_without_control_or_of_one_step_has_fewer_statements() -> None:
    model, params, state, _ = system()
    found = check(model, params, state, steps=1)
    assert wrong(found) == [] and "control" not in found.sizes
    assert "segments = stored" not in statements(found, "angle")  # a single step cannot be computed in parts


def test_the_inputs_are_left_as_they_were() -> None:
    model, params, state, control = system(steps=STEPS)
    before = params.stiffness.data.copy()
    check(model, params, state.replace(angle=state.angle.detach()), steps=STEPS, control=control)
    assert params.stiffness.grad is None
    np.testing.assert_array_equal(params.stiffness.data, before)


def test_a_term_missing_in_the_fused_loops_is_located_by_step_and_field() -> None:
    class Frictionless(PendulumEngine):
        """Drop the second pendulum's damping from step 12 on."""

        def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
            for j in range(steps):
                super().advance(segment, first=first, start=start + j, steps=1)
                if first + start + j >= 12:
                    lost = self.model.dt * self.c[:, 0] * segment["rate"][:, start + j, 1]
                    segment["rate"][:, start + j + 1, 1] += lost
                    segment["angle"][:, start + j + 1, 1] += self.model.dt * lost

    found = certified(Frictionless)
    assert {"loss: nested = fused", "damping: nested = fused"} <= set(wrong(found))
    (finding,) = found.findings
    assert finding.startswith("The first disagreement is in the result of step 12: rate[1] is ")
    assert finding.endswith("That is the contribution of Mul, which is missing in the fused loops.")


def test_a_term_missing_in_the_fused_adjoint_is_located_by_step_and_element() -> None:
    class Forgetful(PendulumEngine):
        """Leave out the adjoint of the third pendulum's restoring force in step 9."""

        def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
            dense = adjoint["angle"].shape[1] > 1
            for j in reversed(range(steps)):
                one = {name: values[:, j:] for name, values in segment.items()}
                part = {name: values[:, j : j + 2] for name, values in adjoint.items()} if dense else adjoint
                adj_rate = part["rate"][:, -1, 2] + self.model.dt * part["angle"][:, -1, 2]
                super().pull(one, first=first + j, steps=1, adjoint=part)
                if first + j == 9:
                    force = self.model.dt * self.k[:, 2] * np.cos(segment["angle"][:, j, 2])
                    part["angle"][:, 0, 2] += force * adj_rate

    found = certified(Forgetful)
    assert "angle: nested = fused" in wrong(found) and "loss: nested = fused" not in wrong(found)
    (finding,) = found.findings
    assert "the first disagreement is in the adjoint before step 9: angle[2] is " in finding
    assert "The nested sub-steps are right there, so the error is in the fused loops." in finding
    assert finding.endswith("That is the contribution of Sin through angle, which is missing in the fused loops.")


def test_a_wrong_contribution_to_a_gradient_in_the_fused_adjoint_is_found() -> None:
    class Double(PendulumEngine):
        def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
            super().pull(segment, first=first, steps=steps, adjoint=adjoint)
            self.sums["damping"] *= 1.001

    found = certified(Double)
    assert "damping: nested = fused" in wrong(found) and "stiffness: nested = fused" not in wrong(found)
    assert "the contribution to the gradient of step 19: damping is " in found.findings[0]
    assert "The nested sub-steps are right there, so the error is in the fused loops." in found.findings[0]


def test_a_wrong_sum_over_the_horizon_is_found_though_each_step_is_right() -> None:
    class Lossy(PendulumEngine):
        def gradients(self) -> Arrays:
            found = super().gradients()
            whole = self.control is not None and self.control.shape[-2] == STEPS
            return {name: g * 1.001 if name == "stiffness" and whole else g for name, g in found.items()}

    (finding,) = certified(Lossy).findings
    assert finding == "Each step agrees, but the fused gradient of stiffness does not follow from the steps."


def test_a_wrong_final_state_is_found() -> None:
    class Late(PendulumEngine):
        """Read the last state wrongly if it is read alone."""

        def read(self, segment: Any, rows: Rows, names: Any = None) -> Arrays:
            found = super().read(segment, rows, names)
            alone = not isinstance(rows, slice) and list(rows) == [STEPS]
            return {n: v * 1.001 if alone else v for n, v in found.items()}

    found = certified(Late)
    assert "loss: nested = fused" in wrong(found)
    assert found.findings[0] == "Each step agrees, but the fused loss does not follow from the steps."


class Push(Function):
    """Function -k sin(angle), with an adjoint that is `off` by a factor."""

    off = 1.0

    @staticmethod
    def forward(ctx: Any, stiffness: Tensor, angle: Tensor) -> Array:
        ctx.save_for_backward(stiffness, angle)
        return -stiffness.data * np.sin(angle.data)

    @staticmethod
    def backward(ctx: Any, adj: Tensor) -> tuple[Array, Array]:
        k, x = (saved.data for saved in ctx.saved_tensors)
        return -adj.data * np.sin(x), -Push.off * adj.data * k * np.cos(x)


@dataclass(frozen=True)
class WithSubStep(Changed):
    """Pendulums with a Function for the restoring force."""

    def step(self, params: Any, state: Any, control: Tensor | None = None) -> State:
        push = Push.apply(params.stiffness, state.angle) - params.damping * state.rate
        rate = state.rate + self.dt * (push if control is None else push + control)
        return State(state.angle + self.dt * rate, rate)


def test_a_sub_step_with_a_wrong_adjoint_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _, params, state, control = system(steps=STEPS)
    assert wrong(check(WithSubStep(), params, state, steps=STEPS, control=control)) == []
    monkeypatch.setattr(Push, "off", 1.01)
    found = check(WithSubStep(), params, state, steps=STEPS, control=control)
    assert "angle: nested = fused" in wrong(found) and "Push: adjoint = finite difference" in wrong(found)
    assert "angle: adjoint = finite difference" not in wrong(found)  # the fused one is right
    assert "in the adjoint before step 19: angle[" in found.findings[0]
    assert "The error is in the nested sub-step Push: its adjoint of angle is off by " in found.findings[0]


def test_a_sub_step_whose_adjoint_is_wrong_in_all_modes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a case in which nested and fused share an element function and its error."""

    class Same(PendulumEngine):
        def pull(self, segment: Any, *, first: int, steps: int, adjoint: Arrays) -> None:
            k, self.k = self.k, self.k * 1.01
            super().pull(segment, first=first, steps=steps, adjoint=adjoint)
            self.k = k

    monkeypatch.setattr(Push, "off", 1.01)
    _, params, state, control = system(steps=STEPS)
    found = check(WithSubStep(engine_class=Same), params, state, steps=STEPS, control=control)
    assert not [what for what in wrong(found) if "nested" in what]
    assert {"angle: adjoint = finite difference", "Push: adjoint = finite difference"} <= set(wrong(found))
    assert any("for angle" in statement.note for statement in found.statements if statement.name == "Push")


def test_a_corrupted_checkpoint_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(self: Sweep, action: Any) -> None:
        honest(self, action)
        if isinstance(action, Store) and action.block == 1:
            self._checkpoints[1]["rate"] *= 1 + 1e-12

    honest = Sweep._execute
    monkeypatch.setattr(Sweep, "_execute", altered)
    found = wrong(certified())
    assert "rate: segments = stored" in found
    assert {what.partition(": ")[2] for what in found} <= {"segments = stored", "binomial = stored"}


def test_a_batch_whose_members_interact_is_noticed() -> None:
    class Crowd(PendulumEngine):
        def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
            super().advance(segment, first=first, start=start, steps=steps)
            if self.batch == 2:
                segment["angle"][1, start + steps] += 1e-4 * segment["angle"][0, start + steps]

    assert {what.partition(": ")[2] for what in wrong(certified(Crowd))} == {"batch = single", "shared = sum"}


class Reordered(PendulumEngine):
    """Pendulums with another order of sums."""

    def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
        dt = self.model.dt
        for j in range(start, start + steps):
            angle, rate = segment["angle"][:, j], segment["rate"][:, j]
            push = self._torque(first + j) - self.c * rate - self.k * np.sin(angle)
            segment["rate"][:, j + 1] = rate + dt * push
            segment["angle"][:, j + 1] = angle + dt * segment["rate"][:, j + 1]


def test_if_the_motion_amplifies_rounding_the_single_steps_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(modes.ROUNDING, "f8", 1e-18)  # as if it were amplified beyond the tolerance
    found = certified(Reordered, how=check)
    amplified = [statement for statement in found.statements if statement.note.startswith("in each step; ")]
    assert amplified and all(statement.passed and statement.claim == "nested = fused" for statement in amplified)
    assert found.findings[0].startswith("Each of the 20 steps agrees, to ")


def test_if_finite_differences_disagree_their_spread_is_the_tolerance() -> None:
    """Check a loss with noise, such as a chaotic motion gives."""

    def noisy(trajectory: Any) -> Tensor:
        honest = trajectory.final.angle.sum()
        return honest + 1e-5 * np.sin(1e9 * honest.item())

    found = certified(loss=noisy)
    assert wrong(found) == []
    (statement,) = [
        statement for statement in found.statements if statement.title == "angle: adjoint = finite difference"
    ]
    assert statement.tolerance > 1e-3 and statement.note.endswith("; the modes and the sub-steps decide")
    assert statement.title in str(found)


def test_modes_are_compared_without_finite_differences_too() -> None:
    found = certified(how=compare_modes)
    assert wrong(found) == [] and "adjoint = finite difference" not in statements(found, "angle")


def test_a_precision_that_is_too_coarse_for_finite_differences_is_refused() -> None:
    with (
        runtime.using(replace(runtime.settings(), precision="f32")),
        pytest.raises(InputError, match="finite differences need f64"),
    ):
        certified()


def test_a_motion_that_blows_up_is_an_error() -> None:
    model, params, state, _ = system()
    wild = Params(params.stiffness, params.damping * -1e4)
    with np.errstate(all="ignore"), pytest.raises(BlowUp, match="Lower the damping"):
        check(model, wild, state, steps=200)


def test_the_text_shows_every_statement_and_cost() -> None:
    lines = str(certified()).splitlines()
    assert lines[0] == "Gradient, over the full horizon of 20 steps in f64 on cpu"
    assert lines[-1] == "proven"
    stiffness = next(line for line in lines if line.startswith("stiffness")).split()
    assert stiffness.count("bitwise") >= 2 and len(stiffness) == 11
    for mode in ("fused", "nested", "step", "segments", "binomial", "batch of 2"):
        assert any(line.startswith(mode) and " ms " in line and "B" in line for line in lines)


def test_the_text_marks_failed_statements() -> None:
    text = str(certified(Negated))
    assert "FAILED stiffness: adjoint = finite difference: " in text
    assert text.splitlines()[-1].endswith("statements failed")


class Negated(PendulumEngine):
    """Pendulums whose adjoint of the stiffness has the wrong sign."""

    def gradients(self) -> Arrays:
        return {name: -g if name == "stiffness" else g for name, g in super().gradients().items()}
