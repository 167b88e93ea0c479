"""The fused rollout as a node of the graph: recomputed steps, memory, interruptions and changed inputs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from simphys.autograd import grad, no_grad, tensor
from simphys.autograd.compose.functional import linearize
from simphys.autograd.errors import GraphError, MissingJvp
from simphys.rollout import rollout

from .cases import Case, assert_bitwise, case, energy, gradient, loss_of
from .pendulums import PendulumEngine, Pendulums, State

KINDS = ("all", "segments", "binomial")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def budget(given: Case, kind: str, **options: Any) -> int:
    return given.budgets(**options)[kind]


# --- computation


def test_as_many_steps_are_computed_again_as_the_plan_says(kind: str) -> None:
    given = case(steps=100, keep="final")
    for memory in (budget(given, kind), given.plan(memory=budget(given, kind)).predicted_bytes):
        before = PendulumEngine.advanced
        trajectory = given.rollout(memory=memory)
        assert PendulumEngine.advanced - before == 100
        loss_of(trajectory).backward()
        assert trajectory.plan is not None
        assert PendulumEngine.advanced - before == 100 + trajectory.plan.recomputed_steps


def test_the_engine_is_asked_for_the_gradients_that_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    engine = Pendulums.engine

    def spied(*args: Any, **options: Any) -> Any:
        asked.append(options["needs"])
        return engine(*args, **options)

    monkeypatch.setattr(Pendulums, "engine", spied)
    given = case()
    model, params, state, control, options = given
    assert control is not None
    given.rollout()
    Case(model, params, state, control.detach(), options).rollout()
    Case(model, params.replace(damping=params.damping.detach()), state, control, options).rollout()
    with no_grad():
        given.rollout()
    assert asked == [{"stiffness", "damping", "control"}, {"stiffness", "damping"}, {"stiffness", "control"}, set()]


@pytest.mark.parametrize("keep", ["all", "final", [3]], ids=str)
def test_the_engine_gets_contiguous_arrays(kind: str, keep: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = case(keep=keep, batch=3, shared=("angle", "rate"))
    seen = []

    def spied(method: str, argument: str) -> Any:
        original = getattr(PendulumEngine, method)

        def call(self: Any, segment: Any, **options: Any) -> Any:
            seen.extend(options[argument].values())
            return original(self, segment, **options)

        return call

    monkeypatch.setattr(PendulumEngine, "pull", spied("pull", "adjoint"))
    monkeypatch.setattr(PendulumEngine, "push", spied("push", "tangent"))
    trajectory = given.rollout(memory=budget(given, kind))
    outputs = (*trajectory.states.tensors(), *trajectory.final.tensors())
    linearize(outputs, given.state.angle)(np.ones(3))
    pushed = len(seen)
    loss_of(trajectory).backward()
    assert len(seen) > pushed > 0
    assert all(array.flags.c_contiguous and array.flags.writeable for array in seen)


def test_the_kept_adjoint_is_the_gradient_by_a_start_there(kind: str) -> None:
    given = case(steps=9, batch=2, keep="all")

    def loss(trajectory: Any, since: int = 0) -> Any:
        states = (trajectory.angle[:, since:], trajectory.rate[:, since:])
        return sum([(x * x).sum() for x in states], (trajectory.final.angle * trajectory.final.rate).sum())

    trajectory = given.rollout(memory=budget(given, kind, keep_adjoint=True), keep_adjoint=True)
    loss(trajectory).backward()
    for step in (0, 4, 8):
        start = State(*[start_at(x, step) for x in (trajectory.angle, trajectory.rate)])
        assert given.control is not None
        later = rollout(given.model, given.params, start, steps=9 - step, control=given.control[:, step:])
        loss(later).backward()
        for name in ("angle", "rate"):
            adjoint = getattr(trajectory.adjoint, name)
            assert adjoint.shape == (2, 10, 3)
            np.testing.assert_allclose(adjoint[:, step], getattr(start, name).grad.numpy(), rtol=1e-12)


def start_at(along: Any, step: int) -> Any:
    return tensor(along.numpy()[:, step], requires_grad=True)


def test_each_backward_fills_its_own_adjoint() -> None:
    trajectory = case().rollout(keep_adjoint=True)
    assert trajectory.adjoint is not None
    with pytest.raises(ValueError, match="exists only after backward"):
        _ = trajectory.adjoint.angle
    trajectory.final.angle.sum().backward(retain_graph=True)
    first = trajectory.adjoint.angle
    before = first.copy()
    (2 * trajectory.final.angle.sum()).backward()
    np.testing.assert_array_equal(first, before)
    np.testing.assert_array_equal(trajectory.adjoint.angle, 2 * before)


# --- memory


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Any]]]:
    """Weak references to all engines that are made."""
    made: list[weakref.ref[Any]] = []
    init = PendulumEngine.__init__

    def spied(self: Any, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        made.append(weakref.ref(self))

    monkeypatch.setattr(PendulumEngine, "__init__", spied)
    yield made


def living(engines: list[weakref.ref[Any]]) -> int:
    gc.collect()
    return sum([engine() is not None for engine in engines])


def test_backward_frees_all_memory(kind: str, engines: list[weakref.ref[Any]]) -> None:
    given = case(running=energy)
    trajectory = given.rollout(memory=budget(given, kind))
    loss = loss_of(trajectory)
    assert living(engines) == 1
    loss.backward(retain_graph=True)
    assert living(engines) == 1
    loss.backward()
    assert living(engines) == 0
    assert trajectory.final.angle.grad_fn is not None


def test_tangents_and_rollouts_without_gradients_leave_nothing(engines: list[weakref.ref[Any]]) -> None:
    given = case()
    trajectory = given.rollout()
    push = linearize(trajectory.final.angle, given.params.stiffness)
    for _ in range(2):
        push(np.ones(3))
        assert living(engines) == 1
    with no_grad():
        unrecorded = given.rollout()
    assert living(engines) == 1 and unrecorded.steps.size == 13


# --- repetition, interruption and changed inputs


def grads(given: Case) -> list[np.ndarray]:
    return [leaf.grad.numpy() for leaf in given.leaves if leaf.grad is not None]


def test_backward_can_be_repeated(kind: str) -> None:
    given = case(running=energy)
    memory = budget(given, kind)
    expected = gradient(given, memory=memory)[1:]
    loss = loss_of(given.rollout(memory=memory))
    for count in (1, 2, 3):
        loss.backward(retain_graph=count < 3)
        assert_bitwise(grads(given), [_times(g, count) for g in expected])
    with pytest.raises(GraphError, match="freed by an earlier backward"):
        loss.backward()


def _times(gradient: np.ndarray, count: int) -> np.ndarray:
    total = gradient
    for _ in range(count - 1):
        total = total + gradient
    return total


@pytest.mark.parametrize("broken_off", ["pull", "advance", "running"])
def test_an_interrupted_backward_can_be_repeated(kind: str, broken_off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt = False

    def interrupted(states: Any, steps: Any) -> Any:
        if interrupt and steps[0] < 4:
            raise KeyboardInterrupt
        return energy(states, steps)

    given = case(running=interrupted if broken_off == "running" else energy)
    memory = budget(given, kind)
    expected = gradient(given, memory=memory)[1:]
    loss = loss_of(given.rollout(memory=memory))

    interrupt = True
    calls = 0
    if broken_off != "running":
        original = getattr(PendulumEngine, broken_off)

        def then_fails(self: Any, *args: Any, **options: Any) -> None:
            nonlocal calls
            calls += 1
            original(self, *args, **options)
            if calls == (2 if broken_off == "pull" and kind != "all" else 1):
                raise KeyboardInterrupt

        monkeypatch.setattr(PendulumEngine, broken_off, then_fails)
    if kind == "all" and broken_off == "advance":
        loss.backward(retain_graph=True)  # recomputes nothing
        assert calls == 0
        return
    with pytest.raises(KeyboardInterrupt):
        loss.backward(retain_graph=True)
    interrupt = False
    monkeypatch.undo()
    loss.backward()
    assert_bitwise(grads(given), expected)


def test_ctrl_c_while_progress_is_reported_leaves_nothing() -> None:
    def interrupted(step: int, steps: int) -> None:
        raise KeyboardInterrupt

    given = case()
    with pytest.raises(KeyboardInterrupt):
        given.rollout(on_progress=interrupted)
    assert_bitwise(gradient(given), gradient(case()))


def test_a_gradient_of_the_gradient_is_refused() -> None:
    given = case(steps=3)
    (first,) = grad(loss_of(given.rollout()), given.params.stiffness, create_graph=True)
    stiffness = given.params.stiffness
    with pytest.raises(MissingJvp, match=r"RolloutBackward: its backward is not recorded.* take gauss_newton"):
        linearize(first, stiffness)(np.ones(stiffness.shape))
    with pytest.raises(GraphError, match="RolloutBackward: its backward is not recorded"):
        first.sum().backward()


@pytest.mark.parametrize("changed", range(5), ids=["stiffness", "damping", "angle", "rate", "control"])
def test_an_input_that_was_changed_is_noticed(kind: str, changed: int) -> None:
    given = case()
    loss = loss_of(given.rollout(memory=budget(given, kind)))
    with no_grad(), given.leaves[changed].writable() as values:
        values += 1
    with pytest.raises(GraphError, match=r"RolloutBackward: saved tensor .* was changed after forward"):
        loss.backward()


def test_a_change_before_forward_is_allowed() -> None:
    given = case()
    with no_grad(), given.params.stiffness.writable() as values:
        values += 1
    assert all(np.isfinite(values).all() for values in gradient(given))
