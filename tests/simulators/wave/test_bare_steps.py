"""Steps of nothing but leapfrog: launches of many steps, in pieces or whole, in rows that are stored or go round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys import rollout as rollouts
from simphys.autograd import linearize, runtime, tensor
from simphys.autograd.kernels.alignment import aligned_zeros
from simphys.rollout import BlowUp
from simphys.simulators.wave.fused import grid_loops
from simphys.simulators.wave.fused.grid_loops import GridLoops
from simphys.simulators.wave.model import Wave

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import DX, Array, Case, assert_same, case, evaluate, still

STEPS = 41
MODELS = {"line": Wave((37,), DX, 0.02), "plane": Wave((21, 18), DX, 0.02), "space": Wave((9, 4, 5), DX, 0.02)}
EACH = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def heights(model: Wave, launches: list[int], *, rows: int = STEPS + 2, way: int = 1) -> Array:
    """Compute heights of two members, [2, rows, *cells], by launches of these numbers of steps."""
    grid = GridLoops(model, 2)
    random, real = np.random.default_rng(0), runtime.real_dtype()
    u = aligned_zeros((2, rows, grid.layout.size), real)
    begin = 0 if way == 1 else rows - 1
    for row in (begin, (begin + way) % rows):
        grid.layout.view_cells(u[:, row])[...] = random.normal(size=(2, *model.cells))
    kappa = grid.layout.pad(random.uniform(0.1, 0.3, (1, *model.cells)).astype(real))
    leap = grid.bind_leap(u, kappa, None)
    for steps in launches:
        leap(begin, steps, way)
        begin += way * steps
    return grid.layout.view_cells(u).copy()


@EACH
def test_many_steps_at_once_are_the_same_to_the_bit(model: Wave) -> None:
    one_by_one = heights(model, [1] * STEPS)
    assert np.isfinite(one_by_one).all() and np.abs(one_by_one[:, -1]).max() > 0.1
    np.testing.assert_array_equal(heights(model, [STEPS]), one_by_one)
    np.testing.assert_array_equal(heights(model, [5, 1, 35]), one_by_one)
    np.testing.assert_array_equal(heights(model, [STEPS], way=-1)[:, ::-1], one_by_one)


@EACH
@pytest.mark.parametrize("rows", [2, 3, 5])
def test_rows_that_go_round_hold_the_last_heights(model: Wave, rows: int) -> None:
    stored, last = heights(model, [STEPS]), heights(model, [7, STEPS - 7], rows=rows)
    for row in range(STEPS + 2 - rows, STEPS + 2):
        assert_equal_but_for_rounding(last[:, row % rows], stored[:, row], ulps=10 * STEPS)


@EACH
@pytest.mark.parametrize("threads", [3, 8])
def test_pieces_of_the_grid_compute_the_same(model: Wave, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For pieces, a launch makes as many steps as these can without their neighbours: for short ones a single one."""
    expected = heights(model, [STEPS])
    precision = runtime.settings().precision
    with runtime.using(runtime.Settings(precision=precision, threads=threads)):
        monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0)
        found = heights(model, [STEPS])
        monkeypatch.setattr(grid_loops, "STEPS_APART", 1)
        one_by_one = heights(model, [STEPS])
    for each in (found, one_by_one):
        assert_equal_but_for_rounding(each, expected, ulps=25 * STEPS)


def field_only(model: Wave, **options: Any) -> Case:
    """Build a case with fixed speeds, which stores no states."""
    given = case(model, STEPS, **options)
    fixed = {name: tensor(getattr(given.params, name).data) for name in given.params.names()}
    return given._replace(params=given.params.replace(**fixed))


@EACH
@pytest.mark.parametrize("batched", [(), ("height",)], ids=["alone", "batch"])
def test_a_rollout_of_the_last_state_stores_one_and_has_the_same_gradients(model: Wave, batched: Any) -> None:
    given = field_only(model, batch=2 if batched else None, batched=batched)
    plan = rollouts.plan(*given[:3], steps=STEPS, keep="final")
    assert plan.rolls and plan.kind == "stateless"
    found = evaluate(given, all_states=False, keep="final")
    for mode in ("step", "nested"):
        assert_same(found, evaluate(given, all_states=False, keep="final", mode=mode), 1e-12)
    stored = evaluate(given, all_states=False, keep=[STEPS - 1, STEPS])
    same = {name for name in found if " " in name}
    assert_same({n: found[n] for n in same}, {n: stored[n] for n in same}, 1e-12)


def test_its_tangents_are_those_of_stored_states() -> None:
    given = field_only(MODELS["plane"])
    leaves = [given.state.height, given.state.previous]
    tangents = [np.random.default_rng(n).normal(size=x.shape) for n, x in enumerate(leaves)]
    rolled, stored = (linearize(given.rollout(keep=k).final.height, leaves)(*tangents) for k in ("final", "all"))
    np.testing.assert_allclose(rolled, stored, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mode", ["fused", "nested"])
@pytest.mark.parametrize("every", [16, 500])
def test_a_blow_up_is_located_as_if_all_states_were_stored(mode: Any, every: int, monkeypatch: Any) -> None:
    monkeypatch.setattr("simphys.rollout.run.FIRST_CHECK", every)
    monkeypatch.setattr("simphys.rollout.run.FIRST_NUMBERS", 0)
    model = Wave((12, 10), DX, 0.08)
    params, state = still(model, height=np.random.default_rng(0).normal(size=model.cells))
    found, values = [], []
    for keep in ("final", "all"):
        with pytest.raises(BlowUp) as caught:
            rollouts.rollout(model, params, state, steps=400, keep=keep, mode=mode, limit=1e9)
        found.append((caught.value.step, caught.value.field, caught.value.element))
        values.append(caught.value.value)
    assert found[0] == found[1] and 16 < found[0][0] < 200
    assert values[0] == pytest.approx(values[1], rel=1e-9)
