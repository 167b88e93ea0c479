"""Random steps of declared sub-steps: generated engines, nested graphs and finite differences agree."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from benchmarks.fuzz.steps import bodies, layers
from benchmarks.fuzz.steps.checks import check, compare, reversed_loops
from benchmarks.fuzz.steps.draws import FAMILIES, TURNS, draw
from benchmarks.fuzz.steps.world import PARAMS, STATE, World
from simphys.autograd import runtime
from simphys.rollout.engine.show import show_kernels

pytestmark = pytest.mark.usefixtures("verified_kernels")

PROGRAMS = int(os.environ.get("SIMPHYS_RANDOM_STEPS", "21"))
"""Number of random steps; the environment asks for more, as does `python -m benchmarks.fuzz --target steps`."""


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_random_step_is_the_same_nested_and_generated(seed: int) -> None:
    """In one launch, in several, in a launch each step whose loops gather, and within a budget; derivatives, too."""
    assert not check(seed)


@pytest.mark.parametrize("seed", [62, 690, 1067, 1198, 1314, 1831])
def test_a_random_step_that_was_wrong_is_right(seed: int) -> None:
    """Layers took vectors for numbers (62), sums had two orders (690), sums without an adjoint no kernel (1067).

    Others failed by rounding alone.
    """
    assert not check(seed)


def test_the_form_of_loops_is_chosen_anew_for_each_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would compare a form with itself."""
    case = draw(0)
    case.trajectory()
    control = None if case.control is None else case.control.data

    def gathers() -> bool:
        engine: Any = case.model.engine(
            case.params.arrays(), control, batch=1, needs=frozenset(), deterministic=False, tangents=None
        )
        return bool(engine.make_plan().key.variant.gathers)

    assert not gathers()
    monkeypatch.setattr(runtime, "parallel", lambda work_us: True)
    assert gathers()


@pytest.mark.parametrize("seed", [1, 3], ids=["loops", "several kernels"])
def test_loops_go_from_the_last_element_to_the_first(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above would compare an order with itself."""
    monkeypatch.setattr(runtime, "parallel", lambda work_us: True)
    with reversed_loops():
        case = draw(seed)
        control = None if case.control is None else case.control.data
        engine: Any = case.model.engine(
            case.params.arrays(), control, batch=1, needs=frozenset(), deterministic=False, tangents=None
        )
        text = show_kernels(engine)
    assert text.count("for back in range(") == text.count("1 - back") > 0
    assert "for y in range(" not in text


def test_draws_hold_all_kinds_of_steps() -> None:
    """Otherwise the test above would prove less than it says."""
    turns = len(TURNS)
    small = [bodies.draw(seed).model for seed in range(16)]
    assert {call.name for model in small for call in model.calls} == {
        *("turn", "tilt", "drive", "stretch", "pull", "flow", "breathe", "add")
    }
    for place, family in enumerate(FAMILIES, TURNS.index("bodies") + 1):
        cases = [draw(seed) for seed in range(place, place + 200 * turns, turns)]
        mixed = {*layers.OF_VECTORS} if family in ("layers", "all") else set()
        assert {call.rule for case in cases for call in case.model.calls} == {*FAMILIES[family]} | mixed
        assert {case.model.dim for case in cases} == {1, 2, 3}
        assert any([case.control is not None for case in cases])
        assert any([case.state.x.ndim > len(case.model.state_shapes()["x"]) for case in cases])
        models: list[World] = [case.model for case in cases]
        assert any([np.any(model.friends < 0) for model in models]) and any(
            [np.all(model.friends >= 0) for model in models]
        )


def test_draws_hold_parameters_that_are_zero_and_not_differentiated() -> None:
    """Engines leave out the terms of these."""
    for family in range(len(TURNS)):
        cases = [draw(seed) for seed in range(family, family + 20 * len(TURNS), len(TURNS))]
        zeros = [x for case in cases for x in case.params.tensors() if x.size and not x.data.any()]
        assert zeros and not any([x.requires_grad for x in zeros])


def test_a_field_of_the_world_has_a_kind() -> None:
    assert (*STATE,) == World.State.names() and (*PARAMS,) == World.Params.names()


def test_a_difference_is_told() -> None:
    ones = {"x": np.ones(3), "gradient by x": np.zeros(2)}
    assert not compare("here", ones, ones)
    assert compare("here", {**ones, "x": np.ones(3) + 1e-9}, ones) == "here: x differs by 1e-09 of 1"
    assert compare("here", None, ones) == "here: it blows up" and not compare("here", None, None)
    assert "differs by nan" in compare("here", {**ones, "gradient by x": np.full(2, np.nan)}, ones)
