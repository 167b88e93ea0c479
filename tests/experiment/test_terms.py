"""What loss terms see of the state: nodes with components of bodies, single numbers of anything else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.experiment.terms import part
from simphys.scenefile.section import Indices, Range
from simphys.simulator.bodies import Bodies

BODIES = Bodies(pinned=np.zeros(5, bool), own=3)


def term(nodes: Indices | None = None, axis: int | None = None) -> Any:
    return SimpleNamespace(nodes=nodes, axis=axis)


@pytest.mark.parametrize(
    ("shape", "nodes", "bodies", "seen"),
    [
        ((5, 2), None, BODIES, (3, 2)),
        ((5, 2), [4, 1], BODIES, (2, 2)),
        ((5,), None, BODIES, (5, 1)),
        ((5, 2, 2), None, BODIES, (20, 1)),
        ((), None, None, (1, 1)),
        ((5,), [2], None, (1, 1)),
        ((4, 6), None, None, (24, 1)),
        ((4, 6), [0, 3], None, (12, 1)),
    ],
)
def test_a_part_of_a_field_is_nodes_by_components(
    shape: tuple[int, ...], nodes: list[int] | None, bodies: Bodies | None, seen: tuple[int, int]
) -> None:
    chosen = part(term(nodes), shape, bodies)
    values = np.random.default_rng(0).normal(size=(7, *shape))
    at_once, along = chosen.of(tensor(values[3])), chosen.of(tensor(values))
    assert at_once.shape == seen and along.shape == (7, *seen)
    np.testing.assert_array_equal(along.data[3], at_once.data)
    rows = slice(seen[0] if bodies is BODIES and len(shape) == 2 else None) if nodes is None else nodes
    np.testing.assert_array_equal(at_once.data.ravel(), values[3][rows].ravel() if shape else values[3])
    gradcheck(chosen.of, (tensor(values, requires_grad=True),), mode="projected")


def test_a_part_may_be_a_range_of_nodes_and_one_axis() -> None:
    values = np.random.default_rng(0).normal(size=(7, 5, 2))
    some = part(term(Range(first=1, last=3)), (5, 2), BODIES)
    np.testing.assert_array_equal(some.of(tensor(values)).data, values[:, 1:4])
    high = part(term(Range(first=1, last=3), axis=1), (5, 2), BODIES)
    np.testing.assert_array_equal(high.of(tensor(values)).data, values[:, 1:4, 1:])
    np.testing.assert_array_equal(high.of(tensor(values[0])).data, values[0, 1:4, 1:])
    np.testing.assert_array_equal(high.target(2.0), [[2.0], [2.0], [2.0]])
    np.testing.assert_array_equal(high.target([1.0, 2.0, 3.0]), [[1.0], [2.0], [3.0]])
    own = part(term(axis=0), (5, 2), BODIES)
    np.testing.assert_array_equal(own.of(tensor(values)).data, values[:, :3, :1])
    gradcheck(high.of, (tensor(values, requires_grad=True),), mode="projected")


def test_a_target_is_one_for_all_nodes_or_one_each() -> None:
    grid = part(term([0, 3]), (4, 6), None)
    np.testing.assert_array_equal(grid.target(2.0), np.full((12, 1), 2.0))
    np.testing.assert_array_equal(grid.target(np.arange(12).reshape(2, 6)), np.arange(12).reshape(12, 1))
    of_bodies = part(term(), (5, 2), BODIES)
    np.testing.assert_array_equal(of_bodies.target([1.0, 2.0]), [1.0, 2.0])
    np.testing.assert_array_equal(part(term(), (), None).target(3), [[3.0]])
