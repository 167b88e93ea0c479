"""On a GPU states stay on the device: what travels in a step is the control and its adjoint, and on the CPU nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime, tensor
from simphys.autograd.kernels.counters import Counters
from simphys.rollout import rollout
from simphys.simulators.smoke import Params, Smoke, State

from ..helpers.contract import Case
from ..simulators.test_contract import CONTRACTS

counters = runtime.counters

HOST = {"smoke", "heat/plane, Crank-Nicolson"}
"""Systems with operations on whole arrays, which the host runs at each step: solves of linear equations."""
SLOW = {"rigid"}
"""Systems whose kernels take minutes to compile for a device; they are of the same engine."""
LAUNCHES = 1.0
"""Largest number of launches in a step, of a rollout and of its adjoint."""
LAUNCHES_OF_SMOKE = {"quadrants": 4, "taichi": 96}
"""Likewise of smoke: its kernels take more arrays than Vulkan's drivers bind, and with Taichi none are joined there."""

SCALARS_OF_A_SOLVE = 512
"""Bytes that tell the convergence of a solve, and its error."""


def systems() -> Any:
    found = {f"{name}/{case.name}": case for name, contract in CONTRACTS.items() for case in contract.devices}
    left_out = HOST | SLOW
    kept = {name: case for name, case in found.items() if not {name, name.partition("/")[0]} & left_out}
    return pytest.mark.parametrize("case", kept.values(), ids=kept)


def first_steps(control: Any, shape: tuple[int, ...], steps: int) -> Any:
    """Return the control of the first steps, over and over where there are more."""
    if control is None:
        return None
    axis = control.ndim - 1 - len(shape)
    rows = np.arange(steps) % control.shape[axis]
    return tensor(np.take(control.data, rows, axis=axis), requires_grad=True)


def work(case: Case, steps: int) -> tuple[Counters, Counters, int]:
    """Return the counts of a rollout that keeps its last state, those of backward, and the bytes of all controls."""
    system = case.system().fresh()
    model, params, state, control = system
    control = first_steps(control, model.control_shape() or (), steps)
    before = counters.now()
    final = rollout(model, params, state, control=control, steps=steps, keep="final").final
    after = counters.now()
    losses = [(value * value).sum() for name in final.names() if (value := getattr(final, name)).size]
    sum(losses[1:], losses[0]).backward()
    members = max(system.batched().values(), default=1)
    adjoint = (
        0
        if control is None
        else control.data.nbytes * (1 if control.ndim > 1 + len(model.control_shape() or ()) else members)
    )
    return after - before, counters.now() - after, adjoint


@pytest.mark.gpu
@systems()
def test_what_travels_in_a_step_is_the_control(case: Case) -> None:
    if not runtime.settings().on_gpu:
        pytest.skip("nothing travels on the processor: SIMPHYS_TEST_ARCH=vulkan runs it")
    work(case, 4)  # compiles, and fills the pool
    (forward, backward, control), (longer, longer_backward, longer_control) = work(case, 4), work(case, 8)
    more, more_backward = longer - forward, longer_backward - backward
    assert forward.launches and backward.launches
    assert more.bytes_up <= longer_control - control
    assert more.bytes_down == 0
    assert more_backward.bytes_up <= longer_control - control
    assert more_backward.bytes_down <= longer_control - control
    assert max(more.launches, more_backward.launches) <= LAUNCHES * 4


@pytest.mark.gpu
@pytest.mark.parametrize(
    "options",
    [
        {"advection": "semi_lagrangian", "grid": "collocated"},
        {},
        {"boundaries": ("inflow", "open", "closed", "closed"), "has_obstacle": True},
        {"boundaries": ("closed",) * 4, "projection": "multigrid", "tolerance": 1e-4},
    ],
    ids=["stable fluids", "periodic", "an obstacle in a channel", "multigrid in a box"],
)
def test_smoke_stays_on_the_device(options: dict[str, Any]) -> None:
    """Its sub-steps are operations with kernels of their own, which are joined."""
    if not runtime.settings().on_gpu:
        pytest.skip("nothing travels on the processor: SIMPHYS_TEST_ARCH=vulkan runs it")
    model = Smoke((12, 10), 1.0, 0.5, **{"projection": "jacobi", **options})
    iterates = model.projection == "multigrid"
    params = Params(**{name: tensor(np.full(shape, 0.01)) for name, shape in model.param_shapes().items()})

    def count(steps: int) -> tuple[Counters, Counters]:
        random = np.random.default_rng(0)
        fields = {n: tensor(random.normal(size=s), requires_grad=True) for n, s in model.state_shapes().items()}
        before = counters.now()
        final = rollout(model, params, State(**fields), steps=steps, keep="final").final
        after = counters.now()
        (final.smoke * final.smoke).sum().backward()
        return after - before, counters.now() - after

    count(4)  # compiles, and fills the pool
    for few, many in zip(count(4), count(8), strict=True):
        more = many - few
        assert more.bytes_up == 0
        assert more.bytes_down <= (4 * SCALARS_OF_A_SOLVE if iterates else 0)
        assert iterates or 0 < more.launches <= LAUNCHES_OF_SMOKE[runtime.compiler] * 4


def test_nothing_is_counted_on_the_processor() -> None:
    forward, backward, _ = work(CONTRACTS["charges"].devices[0], 4)
    assert forward == backward == Counters()


@pytest.mark.gpu
def test_many_rollouts_hold_no_more_memory_than_one() -> None:
    case = CONTRACTS["charges"].devices[0]
    work(case, 4)
    held = counters.live_bytes, counters.pooled_bytes
    for _ in range(12):
        work(case, 4)
    assert (counters.live_bytes, counters.pooled_bytes) == held
