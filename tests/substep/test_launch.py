"""Launches of a single sub-step: small ones run in one thread, large ones share out their loops."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.fuzz.steps.bodies import Pull
from simphys.autograd import runtime, tensor
from simphys.substep import element, launch, per_element
from simphys.substep.program import Value


@element
def multiply(x, k):
    return k * x


@multiply.adjoint
def adj_multiply(x, k, adj):
    return k * adj, x * adj


class Chain(SimpleNamespace):
    """A model of edges between neighbours."""

    __slots__ = ("__weakref__",)


def test_a_loop_that_becomes_worth_sharing_out_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a test of the loops for large systems would run those for small ones."""
    model = Chain(ends=np.array([[0, 1], [1, 2]]))
    shapes = {"d": (3, 2), "u": (3, 2), "k": (2,)}
    op = Pull.pattern.make_op(model, {name: Value(name, shape, "local") for name, shape in shapes.items()})
    random = np.random.default_rng(0)
    with runtime.using(runtime.Settings(threads=2)):
        given: launch.KeyedArrays = {("value", name): random.standard_normal(shape) for name, shape in shapes.items()}
        (serial,) = launch.run_pass(op, "forward", given)
        compiled = len(launch._prepared_passes())
        monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
        (parallel,) = launch.run_pass(op, "forward", given)
        assert len(launch._prepared_passes()) == compiled + 1
    np.testing.assert_allclose(parallel, serial, rtol=1e-13)


def test_index_sets_of_one_name_may_have_two_sizes_in_a_launch() -> None:
    substep = per_element(multiply, over="things", own={"x": "x"}, gathered={"k": ("things", "pick")})
    model = Chain(pick=np.array([4, 0, 4]))
    x, k = tensor(np.ones((3, 2)), requires_grad=True), tensor(np.arange(10.0).reshape(5, 2), requires_grad=True)
    found = substep.apply(model, x, k)
    np.testing.assert_array_equal(found.data, [[8, 9], [0, 1], [8, 9]])
    found.sum().backward()
    assert k.grad is not None and k.grad.data[:, 0].tolist() == [1, 0, 0, 0, 2]
