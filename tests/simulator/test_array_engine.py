"""Common base of engines in host memory: batch members, adjoint sums and segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd.errors import MissingJvp
from simphys.simulator.array_engine import ArrayEngine

from ..rollout.pendulums import Pendulums

PARAMS = {"stiffness": np.arange(6.0).reshape(2, 3), "damping": np.array(0.5)}
CONTROL = np.arange(12.0).reshape(4, 3)


class WithoutLoops(ArrayEngine):
    def advance(self, segment: Any, *, first: int, start: int, steps: int) -> None:
        raise NotImplementedError

    def pull(self, segment: Any, *, first: int, steps: int, adjoint: Any) -> None:
        raise NotImplementedError


def engine(**options: object) -> ArrayEngine:
    given = {"batch": 2, "needs": frozenset({"stiffness", "damping", "control"}), "deterministic": False, **options}
    return WithoutLoops(Pendulums(), PARAMS, CONTROL, **given)  # type: ignore[arg-type]


def test_each_member_has_its_parameters_and_controls() -> None:
    made = engine()
    assert made.control is not None
    np.testing.assert_array_equal(made.params["stiffness"], PARAMS["stiffness"])
    np.testing.assert_array_equal(made.params["damping"], [0.5, 0.5])
    np.testing.assert_array_equal(made.control, [CONTROL, CONTROL])
    assert all(values.flags.c_contiguous for values in (*made.params.values(), made.control))


def test_tangents_that_are_not_given_are_zero() -> None:
    made = engine(tangents={"damping": np.array(2.0)})
    np.testing.assert_array_equal(made.tangents["damping"], [2.0, 2.0])
    assert not made.tangents["stiffness"].any() and made.tangents["control"].shape == (2, 4, 3)


def test_gradients_have_the_shapes_of_what_was_given_and_sums_begin_anew() -> None:
    made = engine()
    for values in made.sums.values():
        values += 1
    made.sums["damping"][1] = 5
    found = made.gradients()
    assert {name: values.shape for name, values in found.items()} == {
        "stiffness": (2, 3),
        "damping": (),
        "control": (4, 3),
    }
    assert found["damping"] == 6 and (found["control"] == 2).all() and (found["stiffness"] == 1).all()
    assert not any(values.any() for values in made.gradients().values())
    assert engine(needs=frozenset({"damping"})).gradients().keys() == {"damping"}


def test_a_segment_is_loaded_and_read_in_copies() -> None:
    made = engine()
    segment = made.segment(4)
    made.load(segment, {"angle": np.broadcast_to(np.ones(3), (2, 3)), "rate": np.zeros((2, 3))})
    segment["angle"][:, 4] = 7
    found = made.read(segment, [0, 4])
    assert found["angle"].shape == (2, 2, 3) and found["angle"].flags.c_contiguous
    assert (found["angle"][:, 0] == 1).all() and (found["angle"][:, 1] == 7).all()
    segment["angle"][:] = 0
    assert found["angle"].all()


def test_its_memory_is_that_of_its_arrays() -> None:
    made = engine()
    assert made.control is not None
    copies = made.params["damping"], made.control  # what the two members share, repeated
    arrays = (*made.segment(10).values(), *made.sums.values(), *copies)
    assert made.segment_bytes(10, dense=False) == sum(values.nbytes for values in arrays)


def test_an_engine_without_tangents_says_so() -> None:
    with pytest.raises(MissingJvp, match="WithoutLoops has no push"):
        engine().push({}, first=0, steps=1, tangent={})
