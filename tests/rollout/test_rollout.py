"""Rollouts in all modes and with all plans give the same loss and the same, correct gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import no_grad, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.graph import ancestors
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import run

from .cases import Case, assert_bitwise, assert_rounding, case, energy, gradient, loss_of
from .pendulums import Pendulums, system

BATCHES = {
    "one system": {},
    "all batched": {"batch": 3},
    "a batch of one": {"batch": 1},
    "a shared parameter": {"batch": 3, "shared": ("stiffness",)},
    "shared parameters": {"batch": 3, "shared": ("stiffness", "damping")},
    "a shared start": {"batch": 3, "shared": ("angle", "rate")},
    "a shared control": {"batch": 3, "shared": ("control",)},
    "only the control batched": {"batch": 3, "shared": ("stiffness", "damping", "angle", "rate")},
    "no control": {"batch": 3, "control": False},
}
KEEPS = ("all", "final", [0], [12], [0, 1, 6, 9], [5, 12])


@pytest.fixture(params=BATCHES.values(), ids=list(BATCHES))
def batched(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


@pytest.mark.parametrize("running", [None, energy], ids=["", "running"])
@pytest.mark.parametrize("keep", KEEPS, ids=str)
def test_every_mode_and_plan_gives_the_same_loss_and_gradient(batched: dict[str, Any], keep: Any, running: Any) -> None:
    given = case(keep=keep, running=running, **batched)
    expected = gradient(given)
    assert all(np.any(values) for values in expected)
    for keep_adjoint in (False, True):
        for memory in given.budgets(keep_adjoint=keep_adjoint).values():
            assert_bitwise(gradient(given, memory=memory, keep_adjoint=keep_adjoint), expected)
    assert_rounding(gradient(given, mode="step"), expected)
    assert_rounding(gradient(given, mode="nested"), expected)


def test_a_batch_equals_its_members_alone(batched: dict[str, Any]) -> None:
    given = case(running=energy, **batched)
    count = batched.get("batch", 1)
    expected = [np.zeros(values.shape) for values in gradient(given)]
    for b in range(count):
        alone, places = _member(given, b)
        for total, value, place in zip(expected, gradient(alone, loss=_even_loss), places, strict=True):
            total[place] += value
    assert_rounding(gradient(given, loss=_even_loss), expected)


def _member(given: Case, b: int) -> tuple[Case, list[Any]]:
    """Make a case of one batch member; return it with the indices of its loss and gradients in those of the batch."""
    shapes = [(3,), (), (3,), (3,), (12, 3)]
    leaves: list[Any] = []
    places: list[Any] = [()]
    for leaf, shape in zip(given.leaves, shapes, strict=False):
        own = leaf.ndim > len(shape)
        leaves.append(tensor(leaf.numpy()[b] if own else leaf.numpy(), requires_grad=True))
        places.append((b,) if own else ())
    params, state = given.params.replace(), given.state.replace()
    params = type(params)(*leaves[:2])
    state = type(state)(*leaves[2:4])
    return Case(given.model, params, state, leaves[4] if len(leaves) > 4 else None, given.options), places


def _even_loss(trajectory: Any) -> Any:
    """Loss that treats all batch members alike."""
    loss = (trajectory.angle * trajectory.angle).sum() + trajectory.final.rate.sum()
    return loss + trajectory.running


@pytest.mark.parametrize("kind", ["all", "segments", "binomial"])
def test_the_gradient_is_right(batched: dict[str, Any], kind: str) -> None:
    given = case(steps=8, keep=[0, 3, 4], running=energy, **batched)
    memory = given.budgets()[kind]
    report = gradcheck(lambda *x: loss_of(given.rollout(*x, memory=memory)), given.leaves, mode="projected", repeats=1)
    assert report.outcome == "passed"


@pytest.mark.parametrize("keep", KEEPS, ids=str)
@pytest.mark.parametrize("kind", ["all", "segments", "binomial"])
def test_tangents_are_the_transpose_of_adjoints(batched: dict[str, Any], kind: str, keep: Any) -> None:
    given = case(keep=keep, running=energy, **batched)
    memory = given.budgets()[kind]

    def outputs(*leaves: Any) -> Any:
        found = given.rollout(*leaves, memory=memory)
        return (*found.states.tensors(), *found.final.tensors(), found.running)

    assert dot_product_test(outputs, given.leaves, tolerance=1e-12) < 1e-12


def test_a_trajectory_names_its_states() -> None:
    trajectory = case(keep=[4, 0, 11, 4]).rollout()
    assert trajectory.steps.tolist() == [0, 4, 11]
    assert trajectory.angle is trajectory.states.angle and trajectory.angle.shape == (3, 3)
    with pytest.raises(AttributeError, match="no 'position'"):
        _ = trajectory.position


def test_the_first_state_is_the_start_and_the_last_the_final_one() -> None:
    given = case(batch=2)
    trajectory = given.rollout()
    assert trajectory.rate.shape == (2, 13, 3)
    np.testing.assert_array_equal(trajectory.rate.numpy()[:, 0], given.state.rate.numpy())
    np.testing.assert_array_equal(trajectory.rate.numpy()[:, -1], trajectory.final.rate.numpy())


@pytest.mark.parametrize("keep", KEEPS, ids=str)
def test_the_plan_is_known_beforehand(keep: Any) -> None:
    for options in ({}, {"running": energy}, {"keep_adjoint": True}):
        given = case(keep=keep)
        for kind, memory in given.budgets(**options).items():
            plan = given.plan(memory=memory, **options)
            assert plan.kind == kind and plan.predicted_bytes <= memory
            assert given.rollout(memory=memory, **options).plan == plan


def test_without_a_gradient_nothing_is_kept() -> None:
    given = case(keep=[0, 3, 12], running=energy)
    with no_grad():
        trajectory = given.rollout()
    recorded = given.rollout()
    assert trajectory.plan is None and not trajectory.angle.requires_grad
    for one, other in zip(trajectory.states.tensors(), recorded.states.tensors(), strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()
    assert trajectory.running is not None and recorded.running is not None
    assert trajectory.running.item() == recorded.running.item()


@pytest.mark.parametrize(("mode", "nodes"), [("fused", 1), ("step", 12), ("nested", 0)])
def test_modes_differ_in_the_nodes_of_the_graph(mode: str, nodes: int) -> None:
    names = [node.name() for node in ancestors(case(keep="final").rollout(mode=mode).final.tensors())]
    assert names.count("RolloutBackward") == nodes
    assert len(names) > 100 or mode != "nested"


@pytest.mark.parametrize("mode", ["fused", "step"])
def test_the_engine_is_asked_for_determinism(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    engine = Pendulums.engine

    def spied(*args: Any, **options: Any) -> Any:
        asked.append(options["deterministic"])
        return engine(*args, **options)

    monkeypatch.setattr(Pendulums, "engine", spied)
    for deterministic in (False, True):
        asked.clear()
        case().rollout(mode=mode, deterministic=deterministic)
        assert set(asked) == {deterministic}


@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
def test_progress_ends_with_the_last_step(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "FIRST_NUMBERS", 0)  # as for large states
    reports: list[tuple[int, int]] = []
    case(steps=150).rollout(mode=mode, on_progress=lambda *at: reports.append(at))
    assert reports == sorted(reports) and reports[0] == (64, 150) and reports[-1] == (150, 150)


def test_other_modes_keep_everything() -> None:
    for options in ({"keep_adjoint": True}, {"memory": "1GB"}):
        with pytest.raises(InputError, match="memory budgets and stored adjoints need mode 'fused'; found step"):
            case().rollout(mode="step", **options)
    with pytest.raises(InputError, match="it is fused, step or nested; found fuesd"):
        case().rollout(mode="fuesd")


def test_tensors_that_require_no_gradient_get_none() -> None:
    model, params, state, control = system(steps=12)
    fixed = params.replace(damping=params.damping.detach())
    given = Case(model, fixed, state, control, {"steps": 12})
    loss_of(given.rollout()).backward()
    assert params.damping.grad is None and fixed.damping.grad is None
    assert params.stiffness.grad is not None and state.angle.grad is not None
