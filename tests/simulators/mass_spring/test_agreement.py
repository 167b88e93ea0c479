"""Nested steps, fused steps and rollouts (serial and gathering) agree in values and gradients.

They do the same arithmetic in a different order, so their results differ by rounding only: about 1e-16 per operation in
f64, which a stable motion over a few dozen steps amplifies little. The bounds are 100 times the observed differences.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime
from simphys.rollout import Mode, rollout
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from .systems import NAMES, controls, fresh, gradients, leaves, system, weights

STEPS = 30
LOSSES = {
    "final position": ["final.position"],
    "final velocity": ["final.velocity"],
    "position along time": ["position"],
    "velocity along time": ["velocity"],
    "all of it": ["position", "velocity", "final.position", "final.velocity"],
}

Result = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
"""States by name and gradients by name."""


def evaluate(mode: Mode, model: MassSpring, params: Params, state: State, loss: list[str]) -> Result:
    """Compute all states, and the gradient of a random weighted sum over the fields that `loss` names."""
    params, start = fresh(leaves(params, state))
    control = controls(model, STEPS) if model.actuators else None
    result = rollout(model, params, start, steps=STEPS, control=control, mode=mode)
    total: Tensor = weights(())
    shape = (STEPS + 1, *start.position.shape)
    w = {name: weights(shape[name.startswith("final") :], seed) for seed, name in enumerate(LOSSES["all of it"])}
    found = {
        "position": result.position,
        "velocity": result.velocity,
        "final.position": result.final.position,
        "final.velocity": result.final.velocity,
    }
    for name in loss:
        total = total + (w[name] * found[name]).sum()
    total.backward()
    arrived = gradients(params, start)
    if control is not None:
        assert control.grad is not None
        arrived["control"] = control.grad.data
    return {field: found[field].data for field in ("position", "velocity")}, arrived


def assert_same(found: Result, expected: Result, relative: float) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        for name, value in theirs.items():
            np.testing.assert_allclose(
                mine[name], value, rtol=0, atol=relative * abs(value).max(initial=0), err_msg=name
            )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
@pytest.mark.parametrize(("dim", "springs", "actuators"), [(1, 7, 0), (2, 18, 0), (3, 7, 0), (2, 18, 4)])
def test_all_modes_give_the_same_states_and_gradients(
    dim: int, springs: int, actuators: int, integrator: str, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of springs: 18 form blocks of four, the last one incomplete; 7 are taken one by one."""
    case = system(dim, integrator=integrator, nodes=8, springs=springs, actuators=actuators, seed=dim)
    nested = evaluate("nested", *case, LOSSES[loss])
    acting = [name for name in NAMES if (dim > 1 or name != "ground_friction") and nested[1][name].size]
    assert all(nested[1][name].any() for name in acting)
    assert_same(evaluate("fused", *case, LOSSES[loss]), nested, 1e-13)
    if loss == "all of it":
        assert_same(evaluate("step", *case, LOSSES[loss]), nested, 1e-13)
    monkeypatch.setattr(runtime, "parallel", lambda work_us: True)
    assert_same(evaluate("fused", *case, LOSSES[loss]), nested, 1e-13)
    if loss == "all of it":
        assert_same(evaluate("nested", *case, LOSSES[loss]), nested, 1e-13)


TWO_THREADS = """
from simphys.autograd import runtime
runtime.init(threads=2)
from tests.simulators.mass_spring.systems import system
from tests.simulators.mass_spring.test_agreement import LOSSES, assert_same, evaluate
case = system(2, nodes=1500, springs=4001)  # more than the 512 entries below which a loop stays on one thread
found = {}
for work_us in (float("inf"), 0.0):
    runtime.PARALLEL_WORK_US = work_us
    found[work_us] = [evaluate(way, *case, LOSSES["all of it"]) for way in ("nested", "fused", "fused")]
serial, gather = found.values()
for each in (*serial[1:], *gather):
    assert_same(each, serial[0], 1e-12)
assert_same(gather[2], gather[1], 0.0)  # no atomics: bitwise the same in every run
print("agreed")
"""


def test_two_threads_agree_with_one_and_with_themselves() -> None:
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", TWO_THREADS],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "agreed"
