"""Elements that read and write the elements of another index set, by index arrays of the model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.substep import collect, element, per_element


def make_links(**changed: Any) -> SimpleNamespace:
    """Return links from a to b, where -1 is none, with a weight and a direction each."""
    values = {"a": [0, 1, 2, 0], "b": [1, -1, 0, 3], "weight": [1, 2, -1, 3]}
    arrays: dict[str, Any] = {name: np.array(each, np.int32) for name, each in values.items()}
    arrays["direction"] = np.random.default_rng(1).normal(size=(4, 2))
    return SimpleNamespace(**{**arrays, **changed})


@dataclass(frozen=True, eq=False)
class Model:
    """Four bodies, with links between two of them each."""

    bodies: int = 4
    links: SimpleNamespace = field(default_factory=make_links)
    width: int = 2


@element
def pull(x_a, x_b, weight, direction):
    return weight * x_a.dot(x_b) * direction, weight * direction * x_b


@pull.adjoint
def adj_pull(x_a, x_b, weight, direction, adj_p, adj_q):
    g = weight * direction.dot(adj_p)
    return g * x_b, g * x_a + weight * direction * adj_q


@pull.tangent
def jvp_pull(x_a, x_b, weight, direction, dx_a, dx_b):
    return weight * (dx_a.dot(x_b) + x_a.dot(dx_b)) * direction, weight * direction * dx_b


Pull = per_element(
    pull,
    over="links",
    gathered={"x_a": ("position", "links.a"), "x_b": ("position", "links.b")},
    of_model={"weight": "links.weight", "direction": "links.direction"},
    results={"p": "model.width", "q": "x_b"},
)
Sum = collect("force", parts={"p": "links.a", "q": "links.b"}, over="links", onto="bodies")


@pytest.fixture(params=["one thread", "shared out"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: request.param == "shared out")


def draw() -> Tensor:
    return tensor(np.random.default_rng(0).normal(size=(4, 2)), requires_grad=True)


@pytest.mark.gpu
@pytest.mark.usefixtures("_loops")
def test_both_ends_of_links_are_read_and_written() -> None:
    """An end that is none reads as 0, and nothing is written there."""
    model, x = Model(), draw()
    links, force = model.links, np.zeros((4, 2))
    for a, b, weight, direction in zip(links.a, links.b, links.weight, links.direction, strict=True):
        x_b = x.data[b] if b >= 0 else np.zeros(2)
        force[a] += weight * (x.data[a] @ x_b) * direction
        if b >= 0:
            force[b] += weight * direction * x_b
    found = Sum.apply(model, *Pull.apply(model, x))
    np.testing.assert_allclose(found.data, force, rtol=0, atol=1e-6)


@pytest.mark.usefixtures("_loops")
def test_derivatives_are_right() -> None:
    model = Model()
    gradcheck(lambda x: Sum.apply(model, *Pull.apply(model, x)), (draw(),))
    dot_product_test(lambda x: Sum.apply(model, *Pull.apply(model, x)), (draw(),))


def test_arrays_that_do_not_fit_are_refused() -> None:
    x, model = draw(), Model()
    with pytest.raises(InputError, match=r"`links\.weight` of the model has numbers for each of 4 links"):
        Pull.apply(replace(model, links=make_links(weight=np.ones(3))), x)
    with pytest.raises(InputError, match=r"`links\.b` of the model lies in 0 \.\.\. 3"):
        Pull.apply(replace(model, links=make_links(b=np.array([0, 1, 2, 4], np.int32))), x)
    p, q = Pull.apply(model, x)
    with pytest.raises(InputError, match="its arrays have entries of one shape"):
        Sum.apply(model, p, q[:, 0])
    with pytest.raises(InputError, match="its arrays have an entry for each of the links"):
        Sum.apply(model, p, q[1:])
