"""A batch gives the results of its members; gradients of shared parameters are summed over them.

Results are bitwise equal if each member has a loop of its own. The kernels of large systems loop over all members; they
are compiled differently for a batch, and round differently.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import rollout
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from .systems import NAMES, controls, leaves, system, tolerance, unpacked, weights

STEPS = 12
MEMBERS = 3
SPRINGS = ("stiffness", "damping", "rest_length", "amplitude")
BATCHED: dict[str, tuple[str, ...]] = {
    "starts": ("position", "velocity"),
    "controls": ("control",),
    "stiffness and start": ("stiffness", "velocity"),
    "mass and ground": ("mass", "ground_height", "gravity"),
    "everything": (*NAMES, "control"),
}


def inputs_of(model: MassSpring, params: Params, state: State, batched: tuple[str, ...], members: int) -> list[Tensor]:
    """State, parameters and control; the `batched` ones differ between members by a few per cent."""
    random = np.random.default_rng(7)
    found = []
    for name, value in zip((*NAMES, "control"), (*leaves(params, state), controls(model, STEPS)), strict=True):
        data = value.data
        if name in batched:
            data = data * random.uniform(0.95, 1.05, (members, *data.shape))
        found.append(tensor(data, requires_grad=True))
    return found


def evaluate(model: MassSpring, inputs: list[Tensor], w: np.ndarray, deterministic: bool = False) -> list[np.ndarray]:
    """Compute all positions and velocities, and the gradients of their sum weighted with `w`."""
    params, state = unpacked(*inputs[:-1])
    result = rollout(model, params, state, steps=STEPS, control=inputs[-1], deterministic=deterministic)
    ((tensor(w[0]) * result.position).sum() + (tensor(w[1]) * result.velocity).sum()).backward()
    return [result.position.data, result.velocity.data, *[x.grad.data for x in inputs if x.grad is not None]]


@pytest.mark.parametrize("integrator", [pytest.param("semi_implicit_euler", marks=pytest.mark.gpu), "velocity_verlet"])
@pytest.mark.parametrize("batched", BATCHED)
def test_a_batch_is_its_members_one_by_one(batched: str, integrator: str, variant: str) -> None:
    names = BATCHED[batched]
    case = system(2, nodes=8, springs=18, actuators=4, integrator=integrator)
    inputs = inputs_of(*case, names, MEMBERS)
    w = weights((2, MEMBERS, STEPS + 1, 8, 2)).data
    together = evaluate(case[0], inputs, w)
    alone = []
    for b in range(MEMBERS):
        data = [x.data[b] if name in names else x.data for name, x in zip((*NAMES, "control"), inputs, strict=True)]
        alone.append(evaluate(case[0], [tensor(x, requires_grad=True) for x in data], w[:, b]))
    each = [list(values) for values in zip(*alone, strict=True)]
    expected = [np.array(values) for values in each[:2]]
    for name, values in zip((*NAMES, "control"), each[2:], strict=True):
        total = values[0].copy()
        for value in values[1:]:
            total += value
        expected.append(np.array(values) if name in names else total)
    for name, mine, theirs in zip(("states", "speeds", *NAMES, "control"), together, expected, strict=True):
        rounding = 0.0 if variant == "serial" else tolerance(f64=1e-13, f32=1e-5) * abs(theirs).max(initial=0)
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=rounding, err_msg=name)


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_the_derivative_of_a_batch_is_right(integrator: str) -> None:
    """Each group has shared and batched parameters."""
    model, params, state = system(2, nodes=6, springs=7, actuators=2, integrator=integrator)
    inputs = inputs_of(model, params, state, ("stiffness", "amplitude", "mass", "gravity", "control"), 2)

    def run(*given: Tensor) -> tuple[Tensor, Tensor]:
        params, state = unpacked(*given[:-1])
        result = rollout(model, params, state, steps=STEPS, control=given[-1])
        return result.position, result.velocity

    gradcheck(run, inputs, mode="projected", tolerance=1e-6)
    dot_product_test(run, inputs, tolerance=1e-12)


@pytest.mark.gpu
def test_a_batch_is_one_node() -> None:
    model, params, state = system(2, actuators=2)
    result = rollout(model, *unpacked(*inputs_of(model, params, state, ("velocity",), 5)[:-1]), steps=2)
    assert result.final.position.shape == (5, *state.position.shape)
    assert result.final.position.grad_fn is result.final.velocity.grad_fn is not None


def digest(threads_case: bool, deterministic: bool) -> str:
    """Checksum of all results of a batch, and of one large system."""
    found = hashlib.md5()
    sizes = [(9, 8, 18)] if threads_case else [(9, 8, 18), (2, 600, 1500)]
    for members, nodes, springs in sizes:
        case = system(2, nodes=nodes, springs=springs, actuators=4)
        for array in evaluate(
            case[0],
            inputs_of(*case, ("velocity", "stiffness"), members),
            weights((2, members, STEPS + 1, nodes, 2)).data,
            deterministic,
        ):
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


THREADS = """
import sys
from simphys.autograd import runtime
runtime.init(threads=int(sys.argv[1]))
runtime.PARALLEL_WORK_US = 5.0  # so that systems of a thousand nodes count as large
from tests.simulators.mass_spring.test_batch import digest
print(digest(False, deterministic=True), digest(True, deterministic=False))
"""


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    """Results are bitwise equal: for small systems always, for large ones with `deterministic`."""
    root = Path(__file__).parents[3]
    found = []
    for threads in ("1", "2", "3"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", THREADS, threads],
            env={**os.environ, "PYTHONPATH": str(root)},
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout.splitlines()[-1])
    assert found[0] == found[1] == found[2]
