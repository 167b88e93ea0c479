"""Random steps of declared sub-steps: generated engines, nested graphs and finite differences agree."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import BlowUp, rollout
from simphys.rollout.generated import plan

from ..helpers.contract import System, assert_same, evaluate
from ..helpers.random_steps import draw

PROGRAMS = int(os.environ.get("SIMPHYS_RANDOM_STEPS", "16"))
"""Number of random steps; the environment asks for more."""


def close(system: System, steps: int, **options: Any) -> None:
    """Compare states and gradients of the nested graph with those of the generated engine.

    A step that blows up does so in either. A gradient whose terms cancel has the rounding of its terms: differences
    below 1e-14 of the largest gradient count for nothing.
    """
    try:
        expected = evaluate(system, steps, mode="nested")
    except BlowUp:
        with pytest.raises(BlowUp):
            evaluate(system, steps, **options)
        return
    found = evaluate(system, steps, **options)
    gradients = [name for name in expected if name.startswith("gradient")]
    floor = 1e-3 * max([np.abs(expected[name]).max(initial=0) for name in gradients], default=0)
    for name in gradients:
        if np.abs(expected[name]).max(initial=0) < floor:
            np.testing.assert_allclose(found.pop(name), expected.pop(name), rtol=0, atol=1e-11 * floor, err_msg=name)
    assert_same(found, expected, 1e-11)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_step_is_the_same_nested_and_generated(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one launch, in a launch each step whose loops gather, and within a memory budget; tangents, too."""
    system, steps = draw(seed)
    close(system, steps)
    monkeypatch.setattr(runtime, "parallel", lambda work_us: True)
    close(system, steps, deterministic=False)
    monkeypatch.undo()
    names = [name for name, x in system.inputs().items() if x.requires_grad]

    def final(*inputs: Tensor) -> tuple[Tensor, ...]:
        model, params, state, control = system.replace(dict(zip(names, inputs, strict=True)))
        return rollout(model, params, state, steps=steps, control=control).final.tensors()

    inputs = [system.inputs()[name] for name in names]
    dot_product_test(final, inputs, tolerance=1e-10)
    if seed % 8 == 0:
        gradcheck(final, inputs, mode="projected", tolerance=1e-6)


@pytest.mark.parametrize("seed", range(0, PROGRAMS, 4))
def test_a_long_step_is_the_same_in_several_launches(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loops are kernels of their own, which loops of the same text share; tangents, too."""
    monkeypatch.setattr(plan, "LONG", 0)
    system, steps = draw(seed)
    close(system, steps)
    names = [name for name, x in system.inputs().items() if x.requires_grad]

    def final(*inputs: Tensor) -> tuple[Tensor, ...]:
        model, params, state, control = system.replace(dict(zip(names, inputs, strict=True)))
        return rollout(model, params, state, steps=steps, control=control).final.tensors()

    dot_product_test(final, [system.inputs()[name] for name in names], tolerance=1e-10)


def test_draws_hold_all_kinds_of_steps() -> None:
    """Otherwise the test above would prove less than it says."""
    systems = [draw(seed)[0] for seed in range(PROGRAMS)]
    assert {call.name for system in systems for call in system.model.calls} == {
        *("turn", "tilt", "drive", "stretch", "pull", "flow", "breathe", "add")
    }
    assert any([system.batched() for system in systems]) and any([s.control is not None for s in systems])
    assert {system.model.dim for system in systems} == {1, 2, 3}
    assert any([np.any(system.model.picks < 0) and system.model.controls for system in systems])
