"""The content of a drawing: all nodes, or the first and the last of many like steps and a box for the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from simphys.autograd import Context, Function, Tensor, ops, runtime, tensor
from simphys.autograd.look.drawing import Drawing, read_graph
from simphys.autograd.node import Node

pytestmark = pytest.mark.gpu

REAL = "f64" if runtime.real_dtype() == np.float64 else "f32"
VECTOR = f"{REAL} 3"


class Force(Function):
    """Two results of one node."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, stiffness: Tensor) -> Any:
        return x.data * 1.0, x.data * 2.0


class Cost(NamedTuple):
    forward: float
    backward: float | None
    bytes_saved: int


class Measured:
    """The costs of nodes by the names of their Functions."""

    def __init__(self, **costs: Cost) -> None:
        self.costs = costs

    def of(self, node: Node) -> Cost | None:
        return self.costs.get(node.function.__name__)


def leaf(length: int = 3) -> Tensor:
    return tensor(np.full(length, 0.5), requires_grad=True)


def rollout(steps: int, x: Tensor, k: Tensor) -> list[Tensor]:
    """The states of nested steps of four nodes each."""
    states = [x]
    for _ in range(steps):
        elastic, drag = Force.apply(states[-1], k)
        states.append(states[-1] + (elastic - drag) * 0.1)
    return states


def labels(drawing: Drawing) -> list[str]:
    return [box.label for box in drawing.boxes]


def arrows_at(drawing: Drawing, box: int) -> list[tuple[str, str, str]]:
    """Arrows from and to a box: the other boxes, and the labels."""
    arriving = [("from", drawing.boxes[a.start].label, a.label) for a in drawing.arrows if a.end == box]
    return arriving + [("to", drawing.boxes[a.end].label, a.label) for a in drawing.arrows if a.start == box]


def test_a_rollout_is_shown_as_its_first_and_last_step_and_a_fold_between() -> None:
    x, k = leaf(), leaf(5)
    drawing = read_graph(rollout(50, x, k)[-1].sum(), names={x: "x", k: "k"})
    step = ["ForceBackward", "SubBackward", "MulBackward", "AddBackward"]
    assert labels(drawing) == ["x", "k", *step, "× 48 more", *step, "SumBackward", "result"]
    fold = drawing.boxes[6]
    assert (fold.kind, fold.like, fold.detail) == ("fold", range(2, 6), ", ".join(step))
    assert arrows_at(drawing, 6) == [
        ("from", "AddBackward", VECTOR),
        ("from", "k", f"{REAL} 5"),
        ("to", "ForceBackward", VECTOR),
        ("to", "AddBackward", VECTOR),
    ]


def test_without_folding_every_node_is_shown() -> None:
    assert len(read_graph(rollout(50, leaf(), leaf())[-1].sum(), fold=False).boxes) == 2 + 50 * 4 + 1 + 1


def test_values_that_pass_through_a_fold_are_counted() -> None:
    drawing = read_graph(ops.stack(rollout(20, leaf(), leaf())))
    assert ("from", "× 18 more", f"18 of {VECTOR}") in arrows_at(drawing, labels(drawing).index("StackBackward"))


def test_leaves_of_hidden_steps_share_a_box() -> None:
    """Each step uses its own control twice."""
    x, controls = leaf(), [leaf() for _ in range(8)]
    cost = ops.sum(x)
    for control in controls:
        x = ops.sin(x) + control
        cost = cost + (control * control).sum()
    names = {control: f"u{i}" for i, control in enumerate(controls)}
    drawing = read_graph(cost + x.sum(), names=names)
    assert labels(drawing)[:4] == ["leaf 1", "u0", "u1 … u6 (6 leaves)", "u7"]
    assert arrows_at(drawing, 2) == [("to", "× 6 more", f"6 of {VECTOR}")]


def test_a_named_result_is_not_folded_away() -> None:
    states = rollout(30, leaf(), leaf())
    drawing = read_graph(states[-1].sum(), names={states[15]: "half\n time", states[-1]: "end"})
    folds = [(box.label, box.like) for box in drawing.boxes if box.kind == "fold"]
    assert folds == [("× 13 more", range(2, 6)), ("× 14 more", range(7, 11))]
    assert labels(drawing)[10] == "AddBackward: half time" and "AddBackward: end" in labels(drawing)


def test_a_long_step_lists_a_few_of_its_names() -> None:
    functions = [ops.sin, ops.cos, ops.exp, ops.tanh, ops.abs, ops.neg, ops.sum, ops.sin]
    x = tensor(0.5, requires_grad=True)
    for _ in range(6):
        for function in functions:
            x = function(x)
    (fold,) = [box for box in read_graph(x).boxes if box.kind == "fold"]
    assert fold.detail == "SinBackward ×2, CosBackward, ExpBackward, TanhBackward, AbsBackward, 2 others"


def test_costs_stand_on_nodes_and_are_summed_in_a_fold() -> None:
    profile = Measured(Force=Cost(12e-6, 20e-6, 1200), Sub=Cost(3e-9, None, 0), Sum=Cost(1.5, None, 25_000_000))
    drawing = read_graph(rollout(7, leaf(), leaf())[-1].sum(), profile=profile)
    costs = {box.label: box.cost for box in drawing.boxes}
    assert costs["ForceBackward"] == "12 µs + 20 µs, 1.2 kB"
    assert costs["SubBackward"] == "3 ns, 0 B"
    assert costs["SumBackward"] == "1.5 s, 25 MB"
    assert costs["× 5 more"] == "60 µs + 100 µs, 6.0 kB"
    assert costs["MulBackward"] == costs["leaf 1"] == costs["result"] == ""
