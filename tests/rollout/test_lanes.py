"""Loops in blocks of lanes, whose particles add to a grid in order, keep the order of what they read and clear."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.fuzz.steps.draws import draw
from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.rollout import rollout

SEED = 454552371
"""A world of four nodes in two dimensions, with edges between them and a grid below."""
NEIGHBOURS = 304
"""A world of seven particles in space, with forces between neighbours."""


def test_the_tangent_of_a_sum_over_edges_that_nodes_spread_to_a_grid() -> None:
    """The sum is cleared for the next step in the loop that spreads it, after it was read."""
    case = draw(SEED)
    model = replace(case.model, calls=tuple([call for call in case.model.calls if call.name in ("flow", "breathe")]))
    case = replace(case, model=model)
    names = ["x", "a", "factor"]

    def final(*inputs: Tensor) -> Tensor:
        given = case.with_values(dict(zip(names, inputs, strict=True)))
        return rollout(model, given.params, given.state, steps=2, control=given.control, keep="final").final.x

    dot_product_test(final, [case.leaves()[name] for name in names])


def test_the_tangent_of_a_loop_that_also_lists_neighbours() -> None:
    """Lists count neighbours, which must not change the number of lanes whose results are stored behind."""
    case = draw(NEIGHBOURS)
    names = ["x", "a", "factor"]

    def final(*inputs: Tensor) -> Tensor:
        given = case.with_values(dict(zip(names, inputs, strict=True)))
        return rollout(given.model, given.params, given.state, steps=2, control=given.control, keep="final").final.x

    dot_product_test(final, [case.leaves()[name] for name in names])
