"""A loop is found by its repeated nodes; nodes that differ between steps are never hidden."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from simphys.autograd.look.folding import Fold, find_folds

Inputs = list[list[int]]


def find(keys: str, inputs: Inputs, shown: tuple[int, ...] = ()) -> list[Fold]:
    """Nodes with one result each, numbered from 10 on; values from before have lower numbers."""
    named = [(key, len(taken)) for key, taken in zip(keys, inputs, strict=True)]
    return find_folds(named, [10 + i for i in range(len(keys))], inputs, shown)


def loop(steps: int) -> tuple[str, Inputs]:
    """y = a(x, 0); x = b(y, x), where x starts as 1."""
    inputs: Inputs = []
    x = 1
    for step in range(steps):
        y = 10 + 2 * step
        inputs += [[x, 0], [y, x]]
        x = y + 1
    return "ab" * steps, inputs


def test_all_but_the_first_and_the_last_step_of_a_loop_are_hidden() -> None:
    folds = find(*loop(50))
    assert folds == [Fold(0, 2, 50)]
    assert folds[0].hidden == range(2, 98)


def test_fewer_than_five_steps_are_shown() -> None:
    assert find(*loop(4)) == []
    assert find(*loop(5)) == [Fold(0, 2, 5)]


def test_steps_may_take_the_next_of_a_list_each() -> None:
    """f of inputs 0 to 5, then g of each result; a step has two of them."""
    assert find("ffffff", [[i] for i in range(6)]) == [Fold(0, 1, 6)]
    assert find("abababababab" + "gggggg", [*loop(6)[1], *[[11 + 2 * i] for i in range(6)]]) == [
        Fold(0, 2, 6),
        Fold(12, 1, 6),
    ]


def test_an_input_that_jumps_is_shown() -> None:
    keys, inputs = loop(11)
    inputs[11] = [inputs[11][0], 12]  # step 5 takes what step 1 made
    assert find(keys, inputs) == [Fold(0, 2, 5), Fold(10, 2, 6)]  # as the first step of the rest


def test_steps_begin_where_the_body_of_the_loop_does() -> None:
    """The node before it is like the loop's last."""
    keys, inputs = loop(10)
    shifted = [[1 + i if i >= 10 else i for i in taken] for taken in inputs]
    assert find("b" + keys, [[2, 3], *shifted]) == [Fold(1, 2, 10)]
    assert find(keys + "a", [*inputs, [29, 0]]) == [Fold(0, 2, 10)]  # and one like its first after it


def test_with_several_possible_starts_the_last_step_is_whole() -> None:
    """A chain: b, then ten times a, b."""
    assert find("b" + "ab" * 10, [[9 + i] for i in range(21)]) == [Fold(1, 2, 10)]


def test_a_first_step_that_is_joined_in_another_way_is_left_out() -> None:
    """Steps x' = a(x, x before): the first two use values from before the loop; one of them can be the fold's first."""
    assert find("aaaaaaaa", [[1, 0], [10, 1], *[[9 + i, 8 + i] for i in range(2, 8)]]) == [Fold(1, 1, 7)]


def test_loops_inside_the_shown_steps_of_a_loop_are_folded_too() -> None:
    """Ten times: six times a, then b."""
    keys = "aaaaaab" * 10
    assert find(keys, [[9 + i] for i in range(70)]) == [Fold(0, 1, 6), Fold(0, 7, 10), Fold(63, 1, 6)]


def test_a_step_with_a_node_to_be_shown_parts_the_fold() -> None:
    assert find(*loop(20), shown=(15,)) == [Fold(0, 2, 8), Fold(14, 2, 13)]
    assert find(*loop(20), shown=(0, 39)) == [Fold(0, 2, 20)]
    assert find(*loop(6), shown=(5,)) == []


def test_nothing_is_folded_in_no_nodes() -> None:
    assert find("", []) == []


@given(st.data())
def test_hidden_steps_are_as_the_shown_ones(data: st.DataObject) -> None:
    """In any graph, steps have the same keys, and inputs that move on by the same stride."""
    pieces = data.draw(st.lists(st.tuples(st.text("ab", min_size=1, max_size=3), st.integers(1, 9)), max_size=5))
    keys = "".join(body * count for body, count in pieces)
    reach = st.lists(st.integers(1, 4), min_size=2, max_size=2)
    reaches = data.draw(st.lists(reach, min_size=1, max_size=4))
    inputs = [[max(10 + i - back, i % 2) for back in reaches[i % len(reaches)]] for i in range(len(keys))]
    folds = find(keys, inputs)
    hidden = [node for fold in folds for node in fold.hidden]
    assert len(set(hidden)) == len(hidden)
    for start, period, steps in folds:
        for node in range(start, start + period):
            places = range(node, node + steps * period, period)
            assert len({keys[place] for place in places}) == 1
            for position in range(2):
                taken = [inputs[place][position] for place in places]
                strides = {later - earlier for earlier, later in itertools.pairwise(taken[1:])}
                assert len(strides) == 1
                assert taken[1] - taken[0] in strides or taken[0] < 10 + start
