"""The gradient in f32 or on a device beside the processor's in f64: a kink is told from a fault, with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.kernels.runtime import ti
from simphys.diagnose.check import make_case
from simphys.diagnose.check.asked import compare_asked
from simphys.diagnose.check.case import Case
from simphys.diagnose.check.scene import case_of, in_f64
from simphys.diagnose.device import compare_first_steps
from simphys.experiment.scene import load_scene
from simphys.simulators.smoke.transport import Transport
from simphys.substep import Chain, Launch, element, per_element

from ...helpers.any_model import make_model

CELLS = 3
SCENES = Path(__file__).parents[3] / "scenes"


@element
def climb(x):
    return ti.select(x > 1.0, 3.0 * x - 2.0, x)


@climb.adjoint
def adj_climb(x, adj):
    return ti.select(x > 1.0, 3.0 * adj, adj)


@element
def shift(x, k):
    return x + k * k


@shift.adjoint
def adj_shift(x, k, adj):
    return adj, 2.0 * k * adj


Climb = per_element(climb, over="places", own={"x": "x"})
Shift = per_element(shift, over="places", own={"x": "x", "k": "k"})


def step(model: Any, params: Any, state: Any, control: Tensor | None) -> Any:
    return state.replace(x=Shift.apply(model, Climb.apply(model, state.x), params.k))


def make(precision: str, start: float) -> Callable[[], Case]:
    def put_in_force() -> Case:
        runtime.init(precision=precision)
        model = make_model(step, {"k": (CELLS,)}, {"x": (CELLS,)})
        dtype = runtime.real_dtype()
        params = model.Params(k=tensor(np.full(CELLS, 0.1, dtype)))
        state = model.State(x=tensor(np.full(CELLS, start).astype(dtype)))
        return make_case(model, params, state, 3, None, None, None, 0)

    return put_in_force


@pytest.fixture(autouse=True)
def _on_the_processor() -> Any:
    if runtime.settings().on_gpu:
        pytest.skip("cases are made for the processor")
    with runtime.keep_settings():
        yield


def test_rounding_is_named_where_there_is_nothing_else() -> None:
    statements, finding = compare_asked(make("f64", 0.5), make("f32", 0.5), seed=0)
    assert all(statement.passed for statement in statements)
    assert finding.startswith("f32 on cpu: loss and gradient are those of the processor in f64 within ")


def test_a_start_on_a_kink_is_told_from_a_fault() -> None:
    """In f64 the start lies a little beyond the kink, in f32 just on it."""
    statements, finding = compare_asked(make("f64", 1 + 1e-12), make("f32", 1 + 1e-12), seed=0)
    assert all(statement.passed for statement in statements)
    (note,) = {statement.note.partition(";")[0] for statement in statements if statement.name == "x"}
    assert note == "from a start disturbed by a thousandth"
    assert "the start lies on a kink of the motion" in finding and "the gradient by x is one of several" in finding


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        ("forward", "The first difference is in the x after step 0. "),
        ("adjoint", "The first difference is in the adjoint of x before step 2. "),
    ],
)
def test_the_step_and_the_sub_step_of_a_fault_are_named(
    broken: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second precision computes with another formula, as a device would that loses a contribution."""

    @element
    def lossy(x, k):
        return 0.9 * x + k * k

    @lossy.adjoint
    def adj_lossy(x, k, adj):
        return 0.9 * adj, 2.0 * k * adj

    @element
    def losing(x, k):
        return x + k * k

    @losing.adjoint
    def adj_losing(x, k, adj):
        return 0.5 * adj, 2.0 * k * adj

    wrong = lossy if broken == "forward" else losing
    Lossy = per_element(wrong, over="places", own={"x": "x", "k": "k"})

    def wrong_step(model: Any, params: Any, state: Any, control: Tensor | None) -> Any:
        return state.replace(x=Lossy.apply(model, Climb.apply(model, state.x), params.k))

    exact = make("f64", 0.5)
    right = step

    def asked() -> Case:
        monkeypatch.setitem(globals(), "step", wrong_step)
        try:
            return make("f32", 0.5)()
        finally:
            monkeypatch.setitem(globals(), "step", right)

    statements, finding = compare_asked(exact, asked, seed=0)
    assert not all(statement.passed for statement in statements)
    assert place in finding
    assert ("It is in the sub-step " if broken == "forward" else "It is in the adjoint of the sub-step ") in finding


@pytest.mark.skipif(not runtime.available("vulkan"), reason="no Vulkan driver is installed")
def test_a_device_that_loses_what_is_written_fails_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = load_scene(
        SCENES / "smoke" / "taylor_green.toml", ["runtime.arch=vulkan", "runtime.precision=f32", "time.steps=4"]
    )
    exact = in_f64(scene)
    pass_on = vars(Transport)["pass_on_ghosts"].func

    def lose(transport: Transport) -> Launch:
        return Chain() if runtime.settings().on_gpu else pass_on(transport)

    monkeypatch.setattr(Transport, "pass_on_ghosts", property(lose))
    statements, finding = compare_asked(lambda: case_of(exact, 0), lambda: case_of(scene, 0), seed=0)
    assert "velocity" in {statement.name for statement in statements if not statement.passed}
    assert "It is in the adjoint of the sub-step Advect" in finding


@pytest.mark.skipif(not runtime.available("vulkan"), reason="no Vulkan driver is installed")
def test_the_first_of_several_recordings_stands_for_them_all_on_a_device() -> None:
    scene = load_scene(SCENES / "pendulum" / "four_angles.toml", ["runtime.arch=vulkan", "runtime.precision=f32"])
    statements, _ = compare_first_steps(scene.parts[0])
    assert statements
    assert all(statement.passed for statement in statements)
