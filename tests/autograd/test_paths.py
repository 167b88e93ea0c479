"""Paths from a leaf to the loss sum to the gradient; branches of a graph do not depend on each other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, grad, ops, tensor
from simphys.autograd.graph import ancestors
from simphys.autograd.look.paths import independent_branches, paths
from simphys.autograd.node import Node


class SumAndDifference(Function):
    """(x + y, x - y)"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Any:
        return x.data + y.data, x.data - y.data

    @staticmethod
    def backward(ctx: Context, adj_sum: Tensor, adj_difference: Tensor) -> Any:
        return adj_sum.data + adj_difference.data, adj_sum.data - adj_difference.data


class Halves(Function):
    """(2 x, 3 y), whose backward receives None for a result that is not on the path."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Any:
        ctx.set_materialize_grads(False)
        return 2 * x.data, 3 * y.data

    @staticmethod
    def backward(ctx: Context, adj_x: Tensor | None, adj_y: Tensor | None) -> Any:
        return None if adj_x is None else 2 * adj_x.data, None if adj_y is None else 3 * adj_y.data


class Sum(Function):
    """x + y + ..., of any number of terms"""

    @staticmethod
    def forward(ctx: Context, *terms: Tensor) -> Any:
        return sum([term.data for term in terms])

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Any:
        return tuple([adj.data] * len(ctx.edges))


def leaf(*values: float) -> Tensor:
    return tensor(np.array(values, dtype=float), requires_grad=True)


def scalar(value: float) -> Tensor:
    return tensor(value, requires_grad=True)


def worked_example() -> tuple[Tensor, Tensor]:
    """The loss and w1 of x3 = w1 x1, x4 = w1 x2, x5 = w2 x3 + w3 x4, L = 1 - x5."""
    x1, x2, w1, w2, w3 = [scalar(value) for value in (1.0, 2.0, 1.0, 2.0, 3.0)]
    return 1 - (w2 * (w1 * x1) + w3 * (w1 * x2)), w1


def chain(x: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
        x = ops.sin(x)
    return x


def doubled(x: Tensor, times: int) -> Tensor:
    for _ in range(times):
        x = x + x
    return x


def sequences(groups: list[list[Node]]) -> list[set[int]]:
    return [{node.sequence for node in group} for group in groups]


def test_the_two_paths_of_the_worked_example_contribute_minus_2_and_minus_6() -> None:
    loss, w1 = worked_example()
    found = paths(loss, w1)
    assert [float(path.contribution) for path in found] == [-2, -6]
    (gradient,) = grad(loss, w1)
    assert gradient is not None and gradient.item() == -8


def test_a_path_reads_from_the_leaf_to_the_loss() -> None:
    loss, w1 = worked_example()
    first = paths(loss, w1, name="w1")[0]
    assert str(first) == "w1 -> MulBackward -> MulBackward -> AddBackward -> SubBackward: -2."
    assert first.nodes[-1] is loss.grad_fn


def test_a_long_path_is_shortened_in_text_only() -> None:
    x = scalar(0.0)
    (path,) = paths(chain(x, 5000), x, name="x")
    assert len(path.nodes) == 5000 and "... 4988 nodes ..." in str(path) and len(str(path)) < 300


def test_a_leaf_used_twice_by_one_node_has_two_paths() -> None:
    x = scalar(3.0)
    found = paths(x * x, x)
    assert [(path.inputs, float(path.contribution)) for path in found] == [((0,), 3.0), ((1,), 3.0)]


def test_contributions_have_the_leafs_shape_and_sum_to_the_gradient() -> None:
    x, y = leaf(1.0, 2.0, 3.0), leaf(2.0)
    loss = (ops.exp(x * y) * x + x / y).sum()
    for t in (x, y):
        found = paths(loss, t)
        (gradient,) = grad(loss, t, retain_graph=True)
        assert gradient is not None and {path.contribution.shape for path in found} == {t.shape}
        np.testing.assert_allclose(sum(path.contribution for path in found), gradient.data, rtol=1e-12)


def test_each_result_of_a_node_is_a_way_through_it() -> None:
    x, y = scalar(5.0), scalar(2.0)
    total, difference = SumAndDifference.apply(x, y)
    assert [float(path.contribution) for path in paths(total * difference, y)] == [3.0, -7.0]  # (x - y), -(x + y)


@pytest.mark.parametrize("use", [0, 1])
def test_a_path_without_an_adjoint_contributes_zero(use: int) -> None:
    x = scalar(5.0)
    found = paths(Halves.apply(x * 1.0, x)[use] * 1.0, x)
    assert sorted(float(path.contribution) for path in found) == [0.0, 2.0 + use]


def test_paths_may_start_at_an_intermediate_result() -> None:
    x, y = scalar(5.0), scalar(2.0)
    total, difference = SumAndDifference.apply(x, y)
    assert [float(path.contribution) for path in paths(total * difference, total)] == [3.0]


def test_the_loss_itself_is_one_path_without_nodes() -> None:
    x = scalar(5.0)
    (path,) = paths(x, x, name="x")
    assert str(path) == "x: 1."


def test_without_a_path_the_list_is_empty() -> None:
    assert paths(scalar(1.0) * 2, scalar(1.0)) == []


def test_too_many_paths_are_counted_and_refused_before_any_is_followed() -> None:
    x = scalar(1.0)
    with pytest.raises(InputError, match=f"limit = 1000.*found {2**100} paths"):
        paths(doubled(x, 100), x)
    with pytest.raises(InputError, match=r"more than 10\^300 paths"):
        paths(doubled(x, 1010), x)


def test_the_limit_itself_is_allowed() -> None:
    x = scalar(1.0)
    assert len(paths(doubled(x, 3), x, limit=8)) == 8
    with pytest.raises(InputError, match="found 8 paths"):
        paths(doubled(x, 3), x, limit=7)


def test_paths_keep_the_graph_and_touch_no_grad() -> None:
    loss, w1 = worked_example()
    paths(loss, w1)
    untouched = w1.grad
    loss.backward()
    assert untouched is None and float(w1.grad or 0) == -8
    with pytest.raises(GraphError, match="freed"):
        paths(loss, w1)


def test_misuse_raises() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(InputError, match="the loss is a scalar"):
        paths(x * 2, x)
    with pytest.raises(InputError, match="the loss is a scalar"):
        paths(tensor(1.0), x)
    with pytest.raises(InputError, match="the leaf requires a gradient"):
        paths(x.sum(), tensor(1.0))


def test_three_chains_that_are_summed_are_three_branches() -> None:
    x = scalar(1.0)
    ends = [chain(x, steps) for steps in (2, 3, 4)]
    found = independent_branches(ends[0] + ends[1] + ends[2])
    assert [len(group) for group in found] == [2, 3, 4]
    assert [group[-1] for group in found] == [end.grad_fn for end in ends]


def test_a_shared_beginning_and_a_shared_end_are_not_in_a_branch() -> None:
    shared = chain(scalar(1.0), 3)
    found = independent_branches(chain(chain(shared, 2) * chain(shared, 5), 4))
    assert [len(group) for group in found] == [2, 5]


def test_the_place_with_most_branches_is_reported() -> None:
    x = scalar(1.0)
    middle = chain(x, 1) * chain(x, 1)
    assert len(independent_branches(chain(middle, 1) + chain(middle, 2) + chain(middle, 3))) == 3


def test_a_branch_keeps_its_inner_nodes_together() -> None:
    x = scalar(1.0)

    def step(x: Tensor) -> Tensor:
        y = ops.exp(x)
        return y * y + y

    assert [len(group) for group in independent_branches(step(x) * step(x))] == [3, 3]


def test_a_graph_that_cannot_be_cut_is_one_branch() -> None:
    x = scalar(1.0)
    assert [len(group) for group in independent_branches(chain(x, 7))] == [7]
    assert independent_branches(x) == []


def test_branches_between_which_results_pass_are_one() -> None:
    x = scalar(1.0)
    a, b = chain(x, 1), chain(x, 1)
    c, d = chain(a, 1), a + b
    assert [len(group) for group in independent_branches(c * d)] == [5]
    assert [len(group) for group in independent_branches(Sum.apply(c, d, chain(x, 3)))] == [4, 3]


def test_an_edge_past_a_cut_joins_nothing() -> None:
    x = scalar(1.0)
    a = chain(x, 2)
    middle = a + chain(x, 1)
    loss = (a * middle) * chain(middle, 2) * chain(middle, 3)
    assert [len(group) for group in independent_branches(loss)] == [1, 2, 3]
    assert [len(group) for group in independent_branches(chain(x, 4) + loss)] == [1, 2, 3, 4]


def test_branches_within_branches_are_found_at_any_depth() -> None:
    x = scalar(1.0)
    state, nodes = chain(x, 1), 1
    for _ in range(1000):
        pushed = state + chain(x, 2)  # an input with a history of its own
        state, nodes = ops.sin(pushed) * ops.cos(pushed), nodes + 6
    found = independent_branches(state)
    assert [len(group) for group in found] == [1] + [2] * 1000
    assert len(ancestors([state])) == nodes + 1


def test_branches_of_long_graphs_are_found() -> None:
    x = scalar(1.0)
    assert len(independent_branches(chain(x, 20_000))) == 1
    total = ops.sin(x)
    for _ in range(5000):
        total = total + ops.sin(x)
    assert len(independent_branches(total)) == 5001


def branches_by_definition(part: list[int], before: dict[int, set[int]]) -> list[list[int]]:
    """Cut at nodes that come before or after all others; where several groups remain, cut each of them."""

    def related(a: int, b: int) -> bool:
        return a in before[b] or b in before[a]

    best = [part]
    cuts = [node for node in part if all(related(node, other) for other in part)]
    for after, until in itertools.pairwise([-1, *cuts, max(part) + 1]):
        groups: list[set[int]] = []
        for node in [node for node in part if after < node < until]:
            joined = [group for group in groups if any(related(node, other) for other in group)]
            groups = [group for group in groups if group not in joined] + [{node}.union(*joined)]
        if cuts and len(groups) > 1:
            found = [branch for group in groups for branch in branches_by_definition(sorted(group), before)]
            best = max(best, found, key=len)
    return sorted(best)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 12)), min_size=1, max_size=30))
def test_branches_are_those_of_their_definition(program: list[tuple[int, int, int]]) -> None:
    x = scalar(0.5)
    values = [x]
    for i, j, window in program:  # the last few values, so that graphs are long rather than wide
        recent = [x, *values[-1 - window :]]
        a, b = recent[i % len(recent)], recent[j % len(recent)]
        values.append(ops.sin(a) if a is b else a + b)
    before: dict[int, set[int]] = {}
    for node in ancestors([values[-1]])[1:]:  # the first is the leaf
        earlier = {edge[0].sequence for edge in node.edges if edge} & before.keys()
        before[node.sequence] = {node.sequence, *earlier}.union(*[before[other] for other in earlier])
    found = [[node.sequence for node in group] for group in independent_branches(values[-1])]
    assert found == branches_by_definition(list(before), before)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=12))
def test_in_any_graph_paths_sum_to_the_gradient_and_branches_are_independent(program: list[tuple[int, int]]) -> None:
    x = scalar(0.5)
    values = [x]
    for i, j in program:
        a, b = values[i % len(values)], values[j % len(values)]
        values.append(ops.sin(a) if i == j else a * b)
    loss = values[-1]
    (gradient,) = grad(loss, x, retain_graph=True)
    assert gradient is not None
    found = paths(loss, x, limit=10_000)
    assert sum(float(path.contribution) for path in found) == pytest.approx(gradient.item(), rel=1e-9, abs=1e-12)
    before: dict[int, set[int]] = {}
    for node in ancestors([loss]):
        before[node.sequence] = {node.sequence}.union(*[before[e[0].sequence] for e in node.edges if e])
    groups = sequences(independent_branches(loss))
    for group, other in itertools.permutations(groups, 2):
        assert not group & other
        assert not any(before[node] & other for node in group)
