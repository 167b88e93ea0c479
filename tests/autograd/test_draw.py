"""The graph as text, DOT and picture shows every node, the sources of its inputs, and their shapes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from simphys.autograd import Context, Function, GraphError, InputError, Tensor, runtime, tensor
from simphys.autograd.look.draw import draw, to_dot, to_mermaid, to_text
from simphys.autograd.node import Node

pytestmark = pytest.mark.gpu

REAL = "f64" if runtime.real_dtype() == np.float64 else "f32"


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
    """A profile with the cost of a Force."""

    def of(self, node: Node) -> Cost | None:
        return Cost(12e-6, 20e-6, 1200) if node.function is Force else None


def steps(count: int) -> tuple[Tensor, dict[Tensor, str]]:
    """A loss after some steps, and names of its leaves and of the last position."""
    x = start = tensor(np.ones((4, 2)), requires_grad=True)
    k = tensor(np.ones(5), requires_grad=True)
    for _ in range(count):
        elastic, drag = Force.apply(x, k)
        x = x + (elastic - drag) * 0.1
    return x.sum(), {start: "position", k: "stiffness", x: "last position"}


def test_text_lists_nodes_in_order_with_their_inputs_names_shapes_and_dtypes() -> None:
    loss, names = steps(1)
    assert (
        to_text(loss, names=names)
        == f"""\
1  position
2  stiffness
3  ForceBackward               <- 1 ({REAL} 4×2), 2 ({REAL} 5)
4  SubBackward                 <- 3 (#0 {REAL} 4×2), 3 (#1 {REAL} 4×2)
5  MulBackward                 <- 4 ({REAL} 4×2)
6  AddBackward: last position  <- 1 ({REAL} 4×2), 5 ({REAL} 4×2)
7  SumBackward                 <- 6 ({REAL} 4×2)
8  result                      <- 7 ({REAL} scalar)"""
    )


def test_leaves_without_a_name_are_numbered() -> None:
    loss, _ = steps(1)
    assert to_text(loss).splitlines()[:2] == ["1  leaf 1", "2  leaf 2"]


def test_text_refers_a_fold_to_the_lines_that_it_repeats() -> None:
    loss, names = steps(50)
    line = to_text(loss, names=names).splitlines()[6]
    assert line == f" 7  × 48 more of 3-6            <- 6 ({REAL} 4×2), 2 ({REAL} 5)"


def test_text_has_a_column_of_costs_when_profiled() -> None:
    loss, _ = steps(1)
    lines = to_text(loss, profile=Measured()).splitlines()
    assert lines[0] == "1  leaf 1"
    assert lines[2] == f"3  ForceBackward  12 µs + 20 µs, 1.2 kB  <- 1 ({REAL} 4×2), 2 ({REAL} 5)"
    assert lines[3] == f"4  SubBackward                           <- 3 (#0 {REAL} 4×2), 3 (#1 {REAL} 4×2)"


def test_a_leaf_alone_is_a_graph() -> None:
    x = tensor([1.0], requires_grad=True)
    assert to_text(x, names={x: "x"}) == f"1  x\n2  result  <- 1 ({REAL} 1)"


def test_dot_has_a_line_for_each_node_and_arrow_and_quotes_names() -> None:
    loss, names = steps(1)
    lines = to_dot(loss, names={tensor_: f'"{name}"' for tensor_, name in names.items()}).splitlines()
    assert lines[0] == "digraph {" and lines[-1] == "}"
    assert sum("->" in line for line in lines) == 9 and sum("fillcolor" in line for line in lines) == 8
    assert any(r'n0 [label="\"position\"", ' in line for line in lines)
    assert any(f'n0 -> n2 [label="{REAL} 4×2"];' in line for line in lines)


def test_mermaid_has_a_line_for_each_node_and_arrow_and_quotes_names() -> None:
    loss, _ = steps(1)
    lines = to_mermaid(loss, names={loss: 'the "loss" #1 <b> & `c`'}).splitlines()
    assert lines[:4] == [
        "flowchart TD",
        '  n0(["leaf 1"]):::leaf',
        '  n1(["leaf 2"]):::leaf',
        '  n2["ForceBackward"]:::node',
    ]
    assert '  n6["SumBackward: the #34;loss#34; #35;1 #60;b#62; #38; #96;c#96;"]:::node' in lines
    assert f'  n2 -->|"#35;0 {REAL} 4×2"| n3' in lines
    assert sum("-->" in line for line in lines) == 9
    assert "  classDef leaf fill:#dcefd9,stroke:#595959,color:#000000" in lines


def test_folds_and_costs_are_in_every_form() -> None:
    loss, _ = steps(7)
    of_fold = ["× 5 more", "ForceBackward, SubBackward, MulBackward,", "AddBackward", "60 µs + 100 µs, 6.0 kB"]
    assert 'n6 [label="' + r"\n".join(of_fold) + '", ' in to_dot(loss, profile=Measured())
    assert 'n6[["' + "<br>".join(of_fold) + '"]]:::fold' in to_mermaid(loss, profile=Measured())
    (axes,) = draw(loss, profile=Measured()).axes
    assert set(of_fold) <= {text.get_text() for text in axes.texts}
    for form in (to_text, to_dot, to_mermaid):
        assert "more" not in form(loss, fold=False)
    assert not any("more" in text.get_text() for text in draw(loss, fold=False).axes[0].texts)


def test_a_picture_of_twenty_nodes_has_no_overlapping_boxes_and_all_labels(tmp_path: Path) -> None:
    loss, names = steps(4)
    figure = draw(loss, names=names, path=tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(b"\x89PNG")
    (axes,) = figure.axes
    texts = [text for text in axes.texts if text.get_text()]
    labels = [text.get_text() for text in texts]
    assert labels.count("ForceBackward") == 4 and labels.count("result") == 1 and "AddBackward: last position" in labels
    assert labels.count("stiffness") == 4  # drawn again near each use
    assert labels.count(f"{REAL} 5") == 4
    frames = [t.get_window_extent() for t in texts if not t.get_text().lstrip("#01 ").startswith(REAL)]
    assert not any(a.overlaps(b) for a, b in itertools.combinations(frames, 2))


def test_a_picture_can_be_saved_for_print(tmp_path: Path) -> None:
    draw(steps(1)[0], path=tmp_path / "graph.svg")
    assert "<svg" in (tmp_path / "graph.svg").read_text()


@pytest.mark.parametrize("form", [to_text, to_dot, to_mermaid, draw])
def test_a_result_without_a_graph_is_refused(form: Any) -> None:
    with pytest.raises(InputError, match="draw: the result must have a graph"):
        form(tensor(1.0))
    x = tensor(1.0, requires_grad=True)
    y = x * x
    y.backward()
    with pytest.raises(GraphError, match="MulBackward: its saved state was freed"):
        form(y)
