"""Programs of one step give one text: no order in it depends on where values lie in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.rollout.engine import GeneratedEngine
from simphys.rollout.engine.show import show_kernels
from simphys.simulator.memo import memo
from simphys.substep import element, per_element

from ..helpers.any_model import make_model

RECORDINGS = 12
"""An order by chance is the same in all of them once in 2000 times."""


@element
def meet(a, b):
    return a * b


@meet.adjoint
def adj_meet(a, b, adj):
    return b * adj, a * adj


@element
def split(x, m):
    return x * m, x + m * m


@split.adjoint
def adj_split(x, m, adj_u, adj_v):
    return m * adj_u + adj_v, x * adj_u + 2 * m * adj_v


@element
def join(u, v, k):
    return k * u * v


@join.adjoint
def adj_join(u, v, k, adj):
    return k * v * adj, k * u * adj, u * v * adj


Meet = per_element(meet, over="nodes", gathered={"a": ("x", "left"), "b": ("x", "right")}, results={"met": "a"})
Split = per_element(split, over="nodes", own={"x": "x", "m": "met"}, results={"u": "x", "v": "x"})
Join = per_element(join, over="nodes", own={"u": "u", "v": "v"}, shared={"k": "k"}, results={"x": "u"})


def step(model: Any, params: Any, state: Any, control: Any = None) -> Any:
    met = Meet.apply(model, state.x)
    return model.State(Join.apply(model, *Split.apply(model, state.x, met), params.k))


PLACES = np.arange(40, dtype=np.int32)
MODEL = make_model(step, {"k": ()}, {"x": (40,)}, left=np.maximum(PLACES - 1, 0), right=np.minimum(PLACES + 1, 39))


def test_recordings_of_a_step_give_the_same_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stores two results of one sub-step, and adds to one adjoint in two ways."""
    monkeypatch.setattr(Split.pattern, "is_cheap", False)
    model, params = MODEL, {"k": np.array(0.5)}
    texts, before = set(), []
    for _ in range(RECORDINGS):
        memo(model).pop("programs of steps", None)
        engine = model.engine(params, None, batch=1, needs=frozenset("k"), deterministic=False)
        assert isinstance(engine, GeneratedEngine)
        texts.add(show_kernels(engine, "launches"))
        before.append(engine)  # so that the next recording lies elsewhere
    (text,) = texts
    assert "stored at each step for the adjoint: u, v\n" in text
    assert "adjoint_met_to_x_2" in text
