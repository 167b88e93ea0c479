"""The contract that every simulator keeps: one physics in all modes, batches, budgets and threads, and its derivative.

Each simulator names its small systems, and the accuracy of each, in the CONTRACT of a module beside its tests.
Nested and fused steps do the same arithmetic, at most in another order, so their results differ by rounding only.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, is_grad_enabled, linearize, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.diagnose.check import make_case
from simphys.diagnose.check.derivatives import check_sub_steps
from simphys.diagnose.check.localize import compute_states
from simphys.rollout import BlowUp, Mode, rollout, run

from ..helpers.contract import Case, Result, System, assert_same, evaluate, named, tolerance
from ..helpers.intruder import Intruder
from .billiards.contract import CONTRACT as BILLIARDS
from .charges.contract import CONTRACT as CHARGES
from .elastic.contract import CONTRACT as ELASTIC
from .heat.contract import CONTRACT as HEAT
from .mass_spring.contract import CONTRACT as MASS_SPRING
from .molecular.contract import CONTRACT as MOLECULAR
from .mpm.contract import CONTRACT as MPM
from .pendulum.contract import CONTRACT as PENDULUM
from .rigid.contract import CONTRACT as RIGID
from .smoke.contract import CONTRACT as SMOKE
from .sph.contract import CONTRACT as SPH
from .wave.contract import CONTRACT as WAVE
from .wave.shallow.contract import CONTRACT as SHALLOW

PATIENCE = 60.0
"""Time [s] for a second thread to be refused."""

CONTRACTS = {
    "billiards": BILLIARDS,
    "charges": CHARGES,
    "elastic": ELASTIC,
    "heat": HEAT,
    "mass_spring": MASS_SPRING,
    "molecular": MOLECULAR,
    "mpm": MPM,
    "pendulum": PENDULUM,
    "rigid": RIGID,
    "shallow": SHALLOW,
    "smoke": SMOKE,
    "sph": SPH,
    "wave": WAVE,
}


def cases(name: str, *, quick: bool = True) -> Any:
    """Parametrize a test by the cases of a property; the quick suite runs those whose id ends with "quick"."""
    found = {}
    for simulator, contract in CONTRACTS.items():
        for place, case in enumerate(getattr(contract, name)):
            stays = quick and name in contract.quick and place == 0
            found[f"{simulator}/{case.name}" + (", quick" if stays else "")] = case
    return pytest.mark.parametrize("case", found.values(), ids=found)


@cases("modes")
def test_all_modes_give_the_same_states_and_gradients(
    case: Case, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Nested steps, fused steps and the fused rollout; for some also the kernels for large systems.

    The first case of each simulator has its kernels verified, which doubles the time, and also runs beside a thread
    that tries the same.
    """
    is_first = any(case is contract.modes[0] for contract in CONTRACTS.values())
    if is_first:
        request.getfixturevalue("verified_kernels")
    system = case.system()
    nested = {loss: evaluate(system, case.steps, loss, mode="nested") for loss in case.losses}
    for loss, expected in nested.items():
        if case.silent is not None:
            silent = {name for name, value in expected.items() if not value.any()}
            assert silent == case.silent.get(loss, frozenset()), loss
        assert_same(evaluate(system, case.steps, loss), expected, case.tolerance)
        assert_same(evaluate(system, case.steps, loss, mode="step"), expected, case.tolerance)
    if is_first:
        compare_beside_a_second_thread(case)
    if case.large is not None:
        case.large(monkeypatch)
        for loss, expected in nested.items():
            assert_same(evaluate(system, case.steps, loss), expected, case.tolerance)
        assert_same(evaluate(system, case.steps, case.losses[0], mode="nested"), nested[case.losses[0]], case.tolerance)


def compare_beside_a_second_thread(case: Case) -> None:
    """Compare bits while a second thread tries the same, which is refused: each Function of the simulator, its engine.

    They are those of the modes, whose kernels are compiled by then.
    """
    system, loss = case.system(), case.losses[0]
    for mode in ("nested", "fused"):
        quiet = evaluate(system, case.steps, loss, mode=mode)
        with Intruder(functools.partial(evaluate, system, case.steps, loss, mode=mode)) as intruder:
            end = time.monotonic() + PATIENCE
            while True:
                assert_same(evaluate(system, case.steps, loss, mode=mode), quiet, 0.0)
                if intruder.refused or time.monotonic() > end:
                    break
        assert intruder.refused and not intruder.other
    assert is_grad_enabled()


@cases("batches")
def test_a_batch_is_its_members(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_batch(case, case.tolerance, monkeypatch)


@pytest.mark.gpu
@cases("devices")
def test_fused_and_nested_agree_on_any_device(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_batch(case, tolerance(case.tolerance, case.f32), monkeypatch)


def compare_batch(case: Case, rounding: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare a fused rollout with nested steps and with its members, by the kernels for large systems, too."""
    fused = compare_members(case, rounding, None if case.members is None else max(case.members, rounding))
    if case.large is not None:
        case.large(monkeypatch)
        assert_same(compare_members(case, rounding, None if case.members is None else rounding), fused, rounding)


def compare_members(case: Case, rounding: float, members: float | None) -> Result:
    """Compare the fused rollout with nested steps and, within `members`, with rollouts of its members alone."""
    system = case.system()
    fused = evaluate(system, case.steps, case.losses[0])
    assert_same(fused, evaluate(system, case.steps, case.losses[0], mode="nested"), rounding)
    batched = system.batched()
    if members is None or not batched:
        return fused
    (count,) = set(batched.values())
    alone = [evaluate(system.member(b), case.steps, case.losses[0], member=(b, count)) for b in range(count)]
    expected = {}
    for name in fused:
        each = [values[name] for values in alone]
        shared = name.startswith("gradient by ") and name.removeprefix("gradient by ") not in batched
        expected[name] = sum(each[1:], start=each[0]) if shared else np.stack(each)
    assert_same(fused, expected, members)
    return fused


@cases("budgets")
def test_checkpoints_change_no_bit(case: Case) -> None:
    system = case.system()
    model, params, state, control = system
    for keep in case.keep:
        options: dict[str, Any] = {"control": control, "steps": case.steps, "keep": keep}
        whole = rollout(model, params, state, **options).plan
        assert whole is not None
        memory = int(whole.predicted_bytes * case.budget)
        plan = rollout(model, params, state, **options, memory=memory).plan
        assert plan is not None and plan.blocks > 1
        for loss in case.losses if keep != "final" else ("final",):
            stored = evaluate(system, case.steps, loss, keep=keep)
            assert_same(evaluate(system, case.steps, loss, keep=keep, memory=memory), stored, 0.0)
            if loss == "final":
                every = evaluate(system, case.steps, loss)
                assert_same(
                    {name: every[name] for name in stored if "states" not in name},
                    {name: stored[name] for name in stored if "states" not in name},
                    0.0,
                )


@cases("budgets")
def test_checks_for_a_blow_up_along_the_way_change_no_bit(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each segment is a new launch, which must continue with the control of its own first step."""
    if case.large is not None:
        case.large(monkeypatch)
    system = case.system()
    seldom = evaluate(system, case.steps)
    monkeypatch.setattr(run, "FIRST_NUMBERS", 0)
    monkeypatch.setattr(run, "FIRST_CHECK", 3)
    assert_same(evaluate(system, case.steps), seldom, 0.0)


@cases("derivatives")
def test_the_derivative_over_the_horizon_is_right(case: Case) -> None:
    """The adjoint is that of finite differences, and the tangent that of the adjoint."""
    system = case.system()
    names = tuple(system.inputs())

    def move(*inputs: Tensor) -> tuple[Tensor, ...]:
        model, params, state, control = system.replace(dict(zip(names, inputs, strict=True)))
        result = rollout(model, params, state, steps=case.steps, control=control, **case.options)
        return tuple(named(result, case.losses[0]).values())

    inputs = tuple(system.inputs().values())

    def reduce(*inputs: Tensor) -> Tensor:
        random = np.random.default_rng(3)
        terms = [(x * tensor(random.standard_normal(x.shape)) + x * x).sum() for x in move(*inputs)]
        return sum(terms, start=tensor(0.0))

    checked: Callable[..., Tensor | tuple[Tensor, ...]] = reduce if case.reduced else move
    gradcheck(checked, inputs, **case.gradcheck)
    if case.dot_product is not None:
        dot_product_test(move, inputs, tolerance=case.dot_product)


@cases("certificates", quick=False)
def test_tangents_by_each_input_add_up_to_that_by_all(case: Case) -> None:
    """A pass is made for the first inputs each, and one for all others, however many these are."""
    model, params, state, control = case.system()
    system = System(model, params, state, control)
    system = system.replace({name: tensor(x.data, requires_grad=True) for name, x in system.inputs().items()})
    inputs = tuple(system.inputs().values())
    push = linearize(
        tuple(named(rollout(*system[:3], steps=case.steps, control=system.control), "final").values()), inputs
    )
    random = np.random.default_rng(8)
    tangents = [random.standard_normal(x.shape) for x in inputs]
    apart = [push(*[t if k == place else None for k, t in enumerate(tangents)]) for place in range(len(inputs))]
    for parts, whole in zip(zip(*apart, strict=True), push(*tangents), strict=True):
        rounding = 1e-12 * max([np.abs(part).max() for part in parts])
        np.testing.assert_allclose(sum(parts), whole, rtol=0, atol=rounding)


@cases("certificates", quick=False)
def test_each_sub_step_is_proven_along_a_motion(case: Case) -> None:
    """The rest of a certificate is proven by the tests of modes, budgets and derivatives, and by those of scenes."""
    model, params, state, control = case.system()
    checked = make_case(model, params, state, case.steps, control, None, None, 0)
    found = list(check_sub_steps(checked, compute_states(checked), [case.steps // 4, case.steps // 2]))
    assert found and [each.title for each in found if not each.passed] == []


@cases("certificates")
def test_only_what_is_asked_for_gets_a_gradient_and_it_is_the_same(case: Case) -> None:
    """Equal to rounding: kernels for fewer gradients are compiled apart, and may contract a * b + c elsewhere.

    A difference in the last bit (1e-16) grows along the motion, by as much as 100 in a swinging chain.
    """
    system = case.system()
    every = evaluate(system, case.steps, "final")
    for name in case.alone:
        alone = system.replace({key: tensor(x.data, requires_grad=key == name) for key, x in system.inputs().items()})
        found = evaluate(alone, case.steps, "final")
        assert [key for key in found if key.startswith("gradient")] == [f"gradient by {name}"]
        assert_same(found, {key: every[key] for key in found}, 1e-13)


@cases("certificates")
def test_a_blow_up_is_reported_in_every_mode(case: Case) -> None:
    """A limit on the values of a state takes the place of a motion that diverges."""
    model, params, state, control = case.system()
    states = rollout(model, params, state, steps=case.steps, control=control).states.arrays()
    largest = [max([np.abs(values[t]).max(initial=0) for values in states.values()]) for t in range(case.steps + 1)]
    limit = 0.99 * largest[-1]  # the last state of a segment decides whether its states are searched
    step = next(t for t, value in enumerate(largest) if value > limit)
    modes: tuple[Mode, ...] = ("fused", "step", "nested")
    for mode in modes:
        with pytest.raises(BlowUp) as caught:
            rollout(model, params, state, steps=case.steps, control=control, mode=mode, limit=limit)
        assert caught.value.step == step
        assert abs(states[caught.value.field][step][caught.value.element]) > limit


THREADS = """
import sys
from simphys.autograd import runtime
runtime.init(threads=int(sys.argv[1]), precision="f64")
from tests.helpers.contract import save_runs
save_runs(*sys.argv[2:])
"""


@pytest.mark.parametrize("simulator", [name for name, contract in CONTRACTS.items() if contract.threads])
def test_neither_a_second_run_nor_the_number_of_threads_changes_a_result(simulator: str, tmp_path: Path) -> None:
    """Not by a bit, unless loops on one thread and on several are compiled apart: these differ by rounding."""
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    folder = "wave.shallow" if simulator == "shallow" else simulator
    for threads in ("1", "3"):
        (tmp_path / threads).mkdir()
        command = [sys.executable, "-P", "-c", THREADS, threads, f"tests.simulators.{folder}.contract"]
        command.append(str(tmp_path / threads))
        done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def load(threads: str, name: str) -> Result:
        with np.load(tmp_path / threads / name) as saved:
            return dict(saved)

    for number, (case, _) in enumerate(CONTRACTS[simulator].cases_on_threads()):
        first = load("1", f"{number} 0.npz")
        assert_same(load("1", f"{number} 1.npz"), first, 0.0)
        assert_same(load("3", f"{number} 1.npz"), load("3", f"{number} 0.npz"), 0.0)
        assert_same(load("3", f"{number} 0.npz"), first, 0.0 if case.options.get("deterministic") else case.tolerance)
