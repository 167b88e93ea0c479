"""Edges that take the values of both of their ends, by themselves and in a generated engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.diagnose.check import check
from simphys.substep import edges, element, per_element

from ..helpers.any_model import make_model

ENDS = np.array([[0, 1], [2, 1], [3, 0], [1, 3]], np.int32)


@element
def leak(d, a, b, k):
    return k * a * a * b * d


@leak.adjoint
def adj_leak(d, a, b, k, adj):
    return k * a * a * b * adj, 2 * k * a * b * d * adj, k * a * a * d * adj, a * a * b * d * adj


@leak.tangent
def jvp_leak(d, a, b, k, dd, da, db, dk):
    return k * a * a * b * dd + 2 * k * a * b * d * da + k * a * a * d * db + a * a * b * d * dk


@element
def rise(u, q, h):
    return u + h * q


@rise.adjoint
def adj_rise(u, q, h, adj):
    return adj, h * adj


@rise.tangent
def jvp_rise(u, q, h, du, dq):
    return du + h * dq


Leak = edges(leak, between={"d": "level"}, both={("a", "b"): "width"}, own={"k": "rate"}, onto="inflow")
LeakByLevel = edges(leak, between={"d": "level"}, both={("a", "b"): "level"}, own={"k": "rate"}, onto="inflow")
Rise = per_element(rise, over="nodes", own={"u": "level", "q": "inflow"}, constant={"h": "dt"})


def step(model: Any, params: Any, state: Any, control: None = None) -> Any:
    flow = Leak.apply(model, state.level, params.width, params.rate)
    more = LeakByLevel.apply(model, state.level, state.level, params.rate)
    return model.State(Rise.apply(model, Rise.apply(model, state.level, flow, model.dt), more, model.dt))


MODEL = make_model(step, {"width": (4,), "rate": (len(ENDS),)}, {"level": (4,)}, ends=ENDS)


def draw() -> list[Tensor]:
    random = np.random.default_rng(0)
    return [tensor(random.uniform(0.5, 1.5, 4), requires_grad=True) for _ in range(3)]


@pytest.fixture(params=["one thread", "shared out"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: request.param == "shared out")


@pytest.mark.usefixtures("_loops")
def test_an_edge_takes_the_values_of_its_ends() -> None:
    level, width, rate = draw()
    u, w, (a, b) = level.data, width.data, ENDS.T
    flow = rate.data * w[a] ** 2 * w[b] * (u[b] - u[a])
    expected = np.zeros(4)
    np.add.at(expected, a, flow)
    np.add.at(expected, b, -flow)
    np.testing.assert_allclose(Leak.apply(MODEL, level, width, rate).data, expected, rtol=1e-13)
    gradcheck(lambda *x: Leak.apply(MODEL, *x), (level, width, rate))
    dot_product_test(lambda *x: Leak.apply(MODEL, *x), (level, width, rate))


@pytest.mark.usefixtures("_loops")
def test_so_it_does_in_a_generated_engine() -> None:
    level, width, rate = draw()
    assert check(MODEL, MODEL.Params(width, rate), MODEL.State(level), steps=5).passed


def test_arrays_of_the_ends_have_an_entry_for_each_node() -> None:
    level, width, rate = draw()
    with pytest.raises(InputError, match="an entry for each of the nodes; found level has 4, width has 3"):
        Leak.apply(MODEL, level, width[1:], rate)
