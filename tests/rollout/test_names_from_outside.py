"""What a step and its element functions take from outside may change: all modes see it, or it is refused."""

# Annotations are evaluated: Taichi takes no text for those of a function.
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.kernels.runtime import ti
from simphys.rollout import rollout
from simphys.rollout.engine import engine_of, program_of
from simphys.simulator import Model, Record, Shape
from simphys.substep import Fields, Functions, Setting, element, per_element, routine


@dataclass(frozen=True)
class Params(Record):
    rate: Tensor


@dataclass(frozen=True)
class State(Record):
    x: Tensor


class Amounts(Model):
    dt = 0.1
    Params = Params
    State = State

    def param_shapes(self) -> dict[str, Shape]:
        return {"rate": ()}

    def state_shapes(self) -> dict[str, Shape]:
        return {"x": (3,)}

    def control_shape(self) -> Shape | None:
        return None


@element
def grow(x, k, h):
    return x + h * k * x


@grow.adjoint
def adj_grow(x, k, h, adj):
    return adj + h * k * adj, h * x * adj


Grow = per_element(grow, over="nodes", own={"x": "x"}, shared={"k": "k"}, constant={"h": "h"})
OTHER = per_element(grow, over="nodes", own={"x": "x"}, shared={"k": "k"}, constant={"h": "h"})
SHARE = 0.1
SETTINGS = SimpleNamespace(share=0.1)
SHARES = {"all": [0.1, 0.2]}
TABLE = {"share": 0.1}
NUMBERS = np.array([0.1, 0.2])
CHOSEN = Grow


def read_share() -> float:
    return SHARE


def of_global(model: Any, params: Any, state: Any, control: Any = None) -> State:
    return State(Grow.apply(model, state.x, params.rate, SHARE))


def of_attribute(model: Any, params: Any, state: Any, control: Any = None) -> State:
    return State(Grow.apply(model, state.x, params.rate, SETTINGS.share))


def of_list(model: Any, params: Any, state: Any, control: Any = None) -> State:
    return State(Grow.apply(model, state.x, params.rate, SHARES["all"][0]))


def of_table(model: Any, params: Any, state: Any, control: Any = None) -> State:
    return State(Grow.apply(model, state.x, params.rate, TABLE["share"]))


def of_array(model: Any, params: Any, state: Any, control: Any = None) -> State:
    return State(Grow.apply(model, state.x, params.rate, float(NUMBERS.max())))


def of_function(model: Any, params: Any, state: Any, control: Any = None) -> State:
    return State(Grow.apply(model, state.x, params.rate, read_share()))


def of_branch(model: Any, params: Any, state: Any, control: Any = None) -> State:
    x = Grow.apply(model, state.x, params.rate, 0.1)
    return State(Grow.apply(model, x, params.rate, 0.3) if SHARE > 0.3 else x)


def of_sub_step(model: Any, params: Any, state: Any, control: Any = None) -> State:
    return State(2.0 * CHOSEN.apply(model, state.x, params.rate, 0.1))


def made_of(step: Any) -> Any:
    kind: Any = type("Amounts", (Amounts,), {})
    kind.bind(step=step, engine=engine_of(step))
    return kind()


def results(model: Any, mode: Any) -> list[Any]:
    rate = tensor(1.0, requires_grad=True)
    found = rollout(model, Params(rate), State(tensor(np.ones(3))), steps=2, mode=mode).final.x
    found.sum().backward()
    assert rate.grad is not None
    return [*found.data.tolist(), float(rate.grad.data)]


def change_global(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SHARE", 0.5)


CHANGES: dict[str, tuple[Any, Callable[[pytest.MonkeyPatch], None]]] = {
    "a global number": (of_global, change_global),
    "a number that a function reads": (of_function, change_global),
    "a number that chooses": (of_branch, change_global),
    "an attribute": (of_attribute, lambda change: change.setattr(SETTINGS, "share", 0.5)),
    "an entry of a list": (of_list, lambda change: change.setitem(SHARES, "all", [0.5, 0.2])),
    "an entry of a table": (of_table, lambda change: change.setitem(TABLE, "share", 0.5)),
    "an array": (of_array, lambda change: change.setitem(globals(), "NUMBERS", 2 * NUMBERS)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_modes_agree_after_a_number_from_outside_has_changed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step, change = CHANGES[what]
    model = made_of(step)
    before = results(model, "fused")
    change(monkeypatch)
    expected = results(model, "nested")
    assert expected != before
    for mode in ("fused", "step"):
        np.testing.assert_allclose(results(model, mode), expected, rtol=1e-14)


def test_modes_agree_after_a_variable_around_a_step_has_changed() -> None:
    share = 0.1

    def step(model: Any, params: Any, state: Any, control: Any = None) -> State:
        return State(Grow.apply(model, state.x, params.rate, share))

    model = made_of(step)
    results(model, "fused")
    share = 0.5
    np.testing.assert_allclose(results(model, "fused"), results(model, "nested"), rtol=1e-14)


def test_a_sub_step_of_another_meaning_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made_of(of_sub_step)
    first = program_of(model, of_sub_step, controlled=False)
    assert program_of(model, of_sub_step, controlled=False) is first
    monkeypatch.setitem(globals(), "CHOSEN", OTHER)
    assert program_of(model, of_sub_step, controlled=False) is not first


FACTOR = 0.1


def make_captured() -> Any:
    """Make a sub-step that captures a number: what it captured first, it keeps."""

    @element
    def gain(x, k):
        return x + FACTOR * k * x

    @gain.adjoint
    def adj_gain(x, k, adj):
        return adj + FACTOR * k * adj, FACTOR * x * adj

    return per_element(gain, over="nodes", own={"x": "x"}, shared={"k": "k"})


def make_calling() -> Any:
    """Make a sub-step whose element function calls one that captures a number."""

    @element
    def factor(k):
        return FACTOR * k

    @element
    def gain(x, k):
        return x + factor(k) * x

    @gain.adjoint
    def adj_gain(x, k, adj):
        return adj + factor(k) * adj, factor(x * adj)

    return per_element(gain, over="nodes", own={"x": "x"}, shared={"k": "k"})


def make_routine() -> Any:
    """Make a routine whose functions capture a number."""

    @ti.func
    def gain(model: ti.template(), x: ti.template()):
        for i in range(3):
            x.y[i] = x.x[i] * (1 + FACTOR * x.k[0])

    @ti.func
    def adj_gain(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        for i in range(3):
            adj_x.x[i] = adj_x.x[i] + (1 + FACTOR * x.k[0]) * adj_x.y[i]
            adj_x.k[0] = adj_x.k[0] + FACTOR * x.x[i] * adj_x.y[i]

    setting = Setting(lambda model: {"x": (3,), "k": (1,), "y": (3,)}, lambda model: {})
    return routine("Gain", Functions(gain, adj_gain), Fields(given=("x", "k"), results=("y",)), setting)


@pytest.mark.parametrize("make", [make_captured, make_calling, make_routine])
@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
@pytest.mark.parametrize("is_backward", [False, True], ids=["another rollout", "backward"])
def test_a_captured_number_that_has_changed_is_refused(
    make: Callable[[], Any], mode: Any, is_backward: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its forward rule would be compiled with one number, and its adjoint with another one."""
    substep = make()
    model = made_of(lambda model, params, state, control=None: State(substep.apply(model, state.x, params.rate)))
    rate = tensor(1.0, requires_grad=True)

    def run() -> Any:
        return rollout(model, Params(rate), State(tensor(np.ones(3))), steps=2, mode=mode).final.x.sum()

    loss = run()
    monkeypatch.setitem(globals(), "FACTOR", 0.5)
    with pytest.raises(InputError, match=r"\w+: what a compiled function captures, .* FACTOR = 0\.5, before 0\.1"):
        loss.backward() if is_backward else run()


def test_what_is_written_in_place_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "NUMBERS", np.array([0.1, 0.2]))
    monkeypatch.setitem(globals(), "SHARES", {"all": [0.1, 0.2]})
    for step, write in ((of_array, lambda: NUMBERS.__setitem__(1, 0.7)), (of_list, lambda: SHARES["all"].append(0.5))):
        model = made_of(step)
        first = program_of(model, step, controlled=False)
        assert program_of(model, step, controlled=False) is first
        write()
        assert program_of(model, step, controlled=False) is not first
