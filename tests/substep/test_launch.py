"""Launches of a single sub-step: small ones run in one thread, large ones share out their loops."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.fuzz.steps.bodies import Pull
from simphys.autograd import runtime
from simphys.substep import launch
from simphys.substep.program import Value


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
        given: launch.Arrays = {("value", name): random.standard_normal(shape) for name, shape in shapes.items()}
        (serial,) = launch.run_pass(op, "forward", given)
        compiled = len(launch._prepared_passes())
        monkeypatch.setattr(runtime, "PARALLEL_WORK_US", 0.0)
        (parallel,) = launch.run_pass(op, "forward", given)
        assert len(launch._prepared_passes()) == compiled + 1
    np.testing.assert_allclose(parallel, serial, rtol=1e-13)
