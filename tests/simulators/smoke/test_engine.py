"""Sub-steps that the engine skips, its memory, and its reports of pressure solves."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.rollout import rollout
from simphys.rollout.engine import GeneratedEngine
from simphys.simulator import Arrays
from simphys.simulators.smoke import Smoke, advect, project
from simphys.simulators.smoke.solve_report import SolveReport, SolveReports, UnconvergedSolve

from ...helpers.contract import System, assert_same, evaluate
from .contract import STEPS, TOLERANCE
from .fluids import fluid, leaves

OFF = ("viscosity", "buoyancy", "smoke_rate")
"""Parameters without effect while they are 0."""


@pytest.mark.parametrize("wanted", [OFF, ("velocity",), ("obstacle",)])
def test_sub_steps_without_effect_are_skipped_but_not_in_the_gradient(wanted: tuple[str, ...]) -> None:
    model, params, state = fluid("channel")
    params = params.replace(**{name: tensor(np.zeros(getattr(params, name).shape)) for name in OFF})
    for name, x in zip((*state.names(), *params.names()), leaves(params, state), strict=True):
        x.requires_grad_(name in wanted)
    system = System(model, params, state)
    nested = evaluate(system, STEPS, mode="nested")
    assert all(nested[f"gradient by {name}"].any() for name in wanted)
    assert_same(evaluate(system, STEPS), nested, TOLERANCE)


def test_batch_members_may_differ_in_active_sub_steps() -> None:
    model, params, state = fluid("torus", batch=2)
    params = params.replace(**{name: masked(getattr(params, name)) for name in OFF})
    system = System(model, params, state)
    assert_same(evaluate(system, STEPS), evaluate(system, STEPS, mode="nested"), TOLERANCE)


def masked(values: Tensor) -> Tensor:
    """Set the values of the first batch member to 0."""
    found = values.data.copy()
    found[0] = 0
    return tensor(found, requires_grad=True)


def engine_of(model: Smoke, *, needs: frozenset[str] = frozenset()) -> tuple[GeneratedEngine, Any]:
    """Build an engine, and a segment of 4 steps that begins with the initial state."""
    _, params, state = fluid("channel")
    engine = model.engine(params.arrays(), None, batch=1, needs=needs, deterministic=False)
    assert isinstance(engine, GeneratedEngine)
    segment = engine.segment(4)
    engine.load(segment, {name: values[None] for name, values in state.arrays().items()})
    return engine, segment


def state_arrays(engine: Any, segment: Any) -> dict[str, np.ndarray]:
    """Read the states of a segment, [B, rows, *shape]."""
    found: dict[str, np.ndarray] = engine.read(segment, slice(None))
    return found


def reports_of(engine: GeneratedEngine, direction: str) -> list[SolveReport]:
    """List the reports of an engine's solves in a direction, one for each batch member that has any."""
    assert isinstance(engine.model, Smoke)
    reports = project.reports_of(engine.model, engine.notes)._reports
    return [report for (of, _), report in reports.items() if of == direction]


def channel(**options: Any) -> Smoke:
    return replace(fluid("channel")[0], **options)


def test_steps_that_are_computed_again_do_not_count_again() -> None:
    engine, segment = engine_of(channel())
    for start, steps in ((0, 3), (0, 3), (3, 1)):
        engine.advance(segment, first=7, start=start, steps=steps)
    (report,) = reports_of(engine, "forward")
    assert report.solves == 4 and report.worst_step in range(7, 11)
    adjoint = {name: np.ones_like(values[:, :1]) for name, values in state_arrays(engine, segment).items()}
    engine.pull(segment, first=7, steps=4, adjoint=adjoint)
    (report,) = reports_of(engine, "backward")
    assert report.solves == 4 and report.error < 1e-10


def test_each_solve_is_reported_with_its_member_and_step() -> None:
    model, params, state = fluid("channel", batch=2)
    engine = model.engine(params.arrays(), None, batch=2, needs=frozenset(), deterministic=False)
    segment = engine.segment(2)
    engine.load(segment, state.arrays())
    arrays = state_arrays(engine, segment)
    calls: list[tuple[str, int, int]] = []
    with patch.object(SolveReports, "select", lambda _, *key: calls.append(key)):
        engine.advance(segment, first=3, start=0, steps=2)
        engine.pull(segment, first=3, steps=2, adjoint={n: a[:, :1].copy() for n, a in arrays.items()})
        engine.push(segment, first=3, steps=2, tangent=state.arrays())
    assert calls == [(way, b, t) for way in ("forward", "backward", "tangent") for t in steps(way) for b in (0, 1)]


def steps(way: str) -> list[int]:
    """List steps 3 and 4, in the order of this direction."""
    return [4, 3] if way == "backward" else [3, 4]


@pytest.mark.parametrize("projection", ["jacobi", "fft"])
def test_direct_solvers_report_nothing(projection: str) -> None:
    model, params, state = fluid("torus")
    model = replace(model, projection=projection)
    engine = model.engine(params.arrays(), None, batch=1, needs=frozenset(), deterministic=False)
    assert isinstance(engine, GeneratedEngine)
    segment = engine.segment(1)
    engine.load(segment, {name: values[None] for name, values in state.arrays().items()})
    engine.advance(segment, first=0, start=0, steps=1)
    assert not reports_of(engine, "forward")


def test_solves_that_end_too_early_are_warned_of_once_forward_and_once_backward() -> None:
    _, params, state = fluid("channel")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rollout(channel(most_iterations=2), params, state, steps=4).final.velocity.sum().backward()
    found = [str(each.message) for each in caught if each.category is UnconvergedSolve]
    assert len(found) == 2
    assert "forward" in found[0] and "backward" in found[1]


class LiveArrays:
    """Bytes of the arrays that watched constructors made and that are still alive, and the most of them."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def watch(self, make: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        """Return the constructor, which now counts."""

        def counted(*args: Any, **options: Any) -> np.ndarray:
            array = make(*args, **options)
            self._add(array.nbytes)
            weakref.finalize(array, self._add, -array.nbytes)
            return array

        return counted

    def _add(self, size: int) -> None:
        self.now += size
        self.most = max(self.most, self.now)


def test_no_more_arrays_live_at_once_than_the_predicted_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Smoke((128, 128), 1.0, 0.1, has_obstacle=True)
    params = {name: np.full(shape, 0.01) for name, shape in model.param_shapes().items()}
    state = {name: np.random.default_rng(0).random((1, *shape)) for name, shape in model.state_shapes().items()}
    for cache in (advect._space, project._workspace):
        cache.cache_clear()
    live = LiveArrays()
    for name in ("zeros", "empty", "zeros_like", "empty_like"):
        monkeypatch.setattr(np, name, live.watch(getattr(np, name)))
    predicted = pull_three_steps(model, params, state)
    assert 0.5 < live.most / predicted < 1


def pull_three_steps(model: Smoke, params: Arrays, state: Arrays) -> int:
    """Run three steps and their adjoint; returns the predicted memory."""
    engine = model.engine(params, None, batch=1, needs=frozenset(params), deterministic=False)
    assert isinstance(engine, GeneratedEngine)
    segment = engine.segment(3)
    engine.load(segment, state)
    engine.advance(segment, first=0, start=0, steps=3)
    adjoint = {name: np.ones((1, 1, *shape)) for name, shape in model.state_shapes().items()}
    engine.pull(segment, first=0, steps=3, adjoint=adjoint)
    return engine.segment_bytes(3, dense=False)
