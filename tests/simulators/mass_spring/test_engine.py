"""The engine gives bitwise the same results in segments as in one piece; its memory; its choice of parallel kernels."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.rollout.generated import GeneratedEngine, arrays
from simphys.simulator import Arrays
from simphys.simulators.mass_spring.model import MassSpring, Params

from .systems import NAMES, controls, system

STEPS = 12
BATCH = 2
INTEGRATORS = ["semi_implicit_euler", "velocity_verlet"]


def case(integrator: str, **options: Any) -> tuple[MassSpring, Arrays, np.ndarray, Arrays]:
    """Model, parameters, control and a batch of initial states."""
    model, params, state = system(2, nodes=8, springs=18, actuators=4, integrator=integrator, **options)
    start = {name: np.stack([value, 1.01 * value]) for name, value in state.arrays().items()}
    return model, params.arrays(), controls(model, STEPS).data, start


def engine_of(model: MassSpring, params: Arrays, control: np.ndarray | None, **options: Any) -> GeneratedEngine:
    given = {"batch": BATCH, "needs": frozenset((*Params.names(), "control")), "deterministic": False, **options}
    engine = model.engine(params, control, **given)
    assert isinstance(engine, GeneratedEngine)
    return engine


def seeds(rows: int, model: MassSpring) -> Arrays:
    """Random derivatives of a loss with respect to all states, [B, rows, n, dim]."""
    random = np.random.default_rng(5)
    shape = (BATCH, rows, model.nodes, model.dim)
    return {name: random.standard_normal(shape).astype(runtime.real_dtype()) for name in ("position", "velocity")}


@pytest.mark.gpu
@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("controlled", [False, True])
def test_a_horizon_cut_into_segments_is_the_same_bit_by_bit(integrator: str, controlled: bool) -> None:
    """States, their adjoints, and gradients; a segment may be longer than the steps that use it."""
    model, params, control, start = case(integrator, controlled=controlled)
    whole, cut = engine_of(model, params, control), engine_of(model, params, control)
    segment = whole.segment(STEPS)
    whole.load(segment, start)
    whole.advance(segment, first=0, start=0, steps=5)
    whole.advance(segment, first=0, start=5, steps=STEPS - 5)
    states = whole.read(segment, slice(None))
    adjoint = seeds(STEPS + 1, model)
    given = {name: values.copy() for name, values in adjoint.items()}
    whole.pull(segment, first=0, steps=STEPS, adjoint=adjoint)

    parts = [(0, 5), (5, 7)]
    short = cut.segment(7)
    cut_states: dict[int, Arrays] = {}
    running = {name: values[:, -1:].copy() for name, values in given.items()}
    for first, steps in reversed(parts):
        cut.load(short, {name: values[:, first] for name, values in states.items()})
        cut.advance(short, first=first, start=0, steps=steps)
        cut_states[first] = cut.read(short, slice(steps + 1))
        part = {name: values[:, first : first + steps + 1].copy() for name, values in given.items()}
        for name, values in part.items():
            values[:, -1:] = running[name]
        cut.pull(short, first=first, steps=steps, adjoint=part)
        for name, values in part.items():
            running[name] = values[:, :1]
            np.testing.assert_array_equal(values, adjoint[name][:, first : first + steps + 1])
    for first, steps in parts:
        for name, values in cut_states[first].items():
            np.testing.assert_array_equal(values, states[name][:, first : first + steps + 1])
    expected, found = whole.gradients(), cut.gradients()
    assert set(expected) == {*NAMES[2:], "control"} and all(x.any() for x in expected.values() if x.size)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.mark.gpu
@pytest.mark.usefixtures("variant")
def test_the_adjoint_of_the_last_state_alone_is_pulled_in_place() -> None:
    model, params, control, start = case("velocity_verlet")
    engine = engine_of(model, params, control)
    segment = engine.segment(STEPS)
    engine.load(segment, start)
    engine.advance(segment, first=0, start=0, steps=STEPS)
    along = {name: np.zeros_like(values) for name, values in seeds(STEPS + 1, model).items()}
    last = seeds(1, model)
    for name, values in last.items():
        along[name][:, -1:] = values
    engine.pull(segment, first=0, steps=STEPS, adjoint=along)
    all_gradients = engine.gradients()
    engine.pull(segment, first=0, steps=STEPS, adjoint=last)
    last_gradients = engine.gradients()  # the sums of the first call were cleared
    for name, values in last.items():
        np.testing.assert_allclose(values, along[name][:, :1], rtol=1e-5 if values.dtype == np.float32 else 1e-12)
    for name, total in all_gradients.items():
        atol = (1e-5 if total.dtype == np.float32 else 1e-13) * abs(total).max(initial=0)
        np.testing.assert_allclose(last_gradients[name], total, rtol=0, atol=atol)


@pytest.mark.gpu
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("controlled", [False, True])
def test_tangents_cut_into_segments_are_the_same_bit_by_bit(integrator: str, controlled: bool) -> None:
    model, params, control, start = case(integrator, controlled=controlled)
    random = np.random.default_rng(6)
    given = {**params, "control": control}
    tangents = {name: random.standard_normal(np.shape(value)).astype(control.dtype) for name, value in given.items()}
    engine = engine_of(model, params, control, tangents=tangents)
    segment = engine.segment(STEPS)
    engine.load(segment, start)
    engine.advance(segment, first=0, start=0, steps=STEPS)
    tangent = {name: values[:, 0] for name, values in seeds(1, model).items()}
    whole = engine.push(segment, first=0, steps=STEPS, tangent=tangent)
    states = engine.read(segment, [5])
    engine.load(segment, {name: values[:, 0] for name, values in states.items()})
    engine.advance(segment, first=5, start=0, steps=7)
    second = engine.push(segment, first=5, steps=7, tangent={name: values[:, 5] for name, values in whole.items()})
    for name, values in second.items():
        assert whole[name].shape == (BATCH, STEPS + 1, 8, 2)
        np.testing.assert_array_equal(values, whole[name][:, 5:])


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("controlled", [False, True])
@pytest.mark.parametrize("needs", [frozenset[str](), frozenset({"stiffness"}), frozenset({*Params.names(), "control"})])
def test_the_predicted_memory_is_what_is_allocated(
    needs: frozenset[str], controlled: bool, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, params, control, start = case("velocity_verlet", controlled=controlled)
    params["stiffness"] = np.stack([params["stiffness"]] * BATCH)
    engine = engine_of(model, params, control, needs=needs)
    predicted = engine.segment_bytes(STEPS, dense=dense)

    def record_arrays(self: GeneratedEngine, loops: Any, given: Any) -> Any:
        seen.update({id(a): a for a in {**self._inputs, **given}.values() if isinstance(a, np.ndarray)})
        return SimpleNamespace(run=lambda *_, **__: None)  # no kernel has to be compiled

    seen: dict[int, np.ndarray] = {}
    monkeypatch.setattr(GeneratedEngine, "_bind", record_arrays)
    segment = engine.segment(STEPS)
    engine.load(segment, start)
    engine.advance(segment, first=0, start=0, steps=STEPS)
    adjoint = seeds(STEPS + 1 if dense else 1, model)
    engine.pull(segment, first=0, steps=STEPS, adjoint=adjoint)
    given = [*params.values(), control, *adjoint.values()]
    given += [model.goal] if controlled else []  # a constant of the model
    made = [array for array in seen.values() if not any(np.may_share_memory(array, other) for other in given)]
    assert sum(array.nbytes for array in made) == predicted


def test_a_segment_beyond_what_kernels_can_index_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "LARGEST", 1000)
    engine = engine_of(*case("semi_implicit_euler")[:3])
    engine.segment(30)
    with pytest.raises(InputError, match=r"at most 1000 numbers.*splits it into segments"):
        engine.segment(31)
