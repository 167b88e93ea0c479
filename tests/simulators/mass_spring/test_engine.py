"""The engine gives bitwise the same results in segments as in one piece; its memory; its choice of parallel kernels."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.rollout.engine import GeneratedEngine, arrays
from simphys.simulator import Arrays
from simphys.simulators.mass_spring.model import MassSpring, Params

from .systems import controls, system

STEPS = 12
BATCH = 2


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
