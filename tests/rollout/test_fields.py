"""Trajectories with some fields of the states: the same numbers, gradients and tangents, in less memory."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, linearize
from simphys.autograd.errors import InputError
from simphys.rollout import Trajectory

from .cases import Case, case


def of_rate(trajectory: Trajectory) -> Tensor:
    return (trajectory.rate * trajectory.rate).sum() + trajectory.final.angle.sum()


def gradients(given: Case, **options: object) -> list[np.ndarray]:
    leaves = [leaf.detach().requires_grad_() for leaf in given.leaves]
    of_rate(given.rollout(*leaves, **options)).backward()
    return [leaf.grad.numpy() for leaf in leaves if leaf.grad is not None]


@pytest.mark.parametrize("batch", [None, 2])
def test_other_fields_have_no_rows_and_gradients_are_the_same(batch: int | None) -> None:
    given = case(batch=batch, keep=[0, 3, 4, 12])
    whole, part = given.rollout(), given.rollout(fields=["rate"])
    np.testing.assert_array_equal(part.rate.data, whole.rate.data)
    assert part.angle.size == 0 and part.final.angle.size
    for one, other in zip(gradients(given), gradients(given, fields=["rate"]), strict=True):
        assert one.tobytes() == other.tobytes()


def test_tangents_are_the_same() -> None:
    given = case(keep=[0, 3, 12])
    tangents = [np.ones(leaf.shape) for leaf in given.leaves]
    pushed = [
        linearize((given.rollout(**options).rate,), given.leaves)(*tangents) for options in ({}, {"fields": ["rate"]})
    ]
    np.testing.assert_array_equal(pushed[0][0], pushed[1][0])


def test_a_plan_counts_what_is_kept() -> None:
    given = case(keep="all")
    rows = 2 * 13 * 3 * 8  # rows and their adjoints, for one of two fields
    assert given.plan().predicted_bytes - given.plan(fields=["rate"]).predicted_bytes == rows


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InputError, match="each is one of angle, rate; found speed"):
        case().rollout(fields=["speed"])
