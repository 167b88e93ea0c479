"""Views of the graph of a result: as text for a terminal, as DOT and Mermaid, and as a matplotlib picture.

Arrows point in the direction of the computation, from leaves to the result, and carry dtype and shape.
All forms take the same options:

- names: labels of leaves (else `leaf 1`, `leaf 2`, ...) and of results; a named result is always shown.
- fold: of five or more repetitions of the same nodes, such as the steps of a rollout, show the first and the last, and
  one box for those between them. With False every node is shown.
- profile: the object of `with profile() as p: ...`; adds to each node its time forward and backward and the bytes it
  saved. The backward must have kept the graph (retain_graph=True).

Errors: InputError for a result without a graph, GraphError when a backward freed it.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from ..tensor import Tensor
from .drawing import COLORS, Box, Names, Profile, lines_of, read_graph
from .picture import picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MERMAID_SHAPES = {"leaf": "([{}])", "node": "[{}]", "fold": "[[{}]]", "result": "([{}])"}


def to_text(output: Tensor, *, names: Names | None = None, fold: bool = True, profile: Profile | None = None) -> str:
    """The graph as text, a numbered line for each box: name, cost, and for each input its source, dtype and shape."""
    boxes, arrows = read_graph(output, names=names, fold=fold, profile=profile)
    width = len(str(len(boxes)))
    labels = [_text_label(box) for box in boxes]
    label_width = max(map(len, labels))
    cost_width = max(len(box.cost) for box in boxes)
    inputs: list[list[str]] = [[] for _ in boxes]
    for start, end, label in arrows:
        inputs[end].append(f"{start + 1} ({label})")
    lines = []
    for number, (box, label, arriving) in enumerate(zip(boxes, labels, inputs, strict=True), 1):
        cost = f"  {box.cost:<{cost_width}}" if cost_width else ""
        source = f"  <- {', '.join(arriving)}" if arriving else ""
        lines.append(f"{number:>{width}}  {label:<{label_width}}{cost}{source}".rstrip())
    return "\n".join(lines)


def _text_label(box: Box) -> str:
    return box.label if box.like is None else f"{box.label} of {box.like.start + 1}-{box.like.stop}"


def to_dot(output: Tensor, *, names: Names | None = None, fold: bool = True, profile: Profile | None = None) -> str:
    """The graph in Graphviz's language."""
    boxes, arrows = read_graph(output, names=names, fold=fold, profile=profile)
    lines = ["digraph {", '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
    for number, box in enumerate(boxes):
        twice = ", peripheries=2" if box.kind == "fold" else ""
        lines.append(f'  n{number} [label={_dot_string(_lines(box))}, fillcolor="{COLORS[box.kind]}"{twice}];')
    lines += [f"  n{start} -> n{end} [label={_dot_string(label)}];" for start, end, label in arrows]
    return "\n".join([*lines, "}"])


def _dot_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def to_mermaid(output: Tensor, *, names: Names | None = None, fold: bool = True, profile: Profile | None = None) -> str:
    """The graph as a Mermaid flowchart, which Markdown viewers show."""
    boxes, arrows = read_graph(output, names=names, fold=fold, profile=profile)
    kinds = dict.fromkeys(box.kind for box in boxes)
    lines = ["flowchart TD"]
    for number, box in enumerate(boxes):
        lines.append(f"  n{number}{_MERMAID_SHAPES[box.kind].format(_mermaid_string(_lines(box)))}:::{box.kind}")
    lines += [f"  n{start} -->|{_mermaid_string(label)}| n{end}" for start, end, label in arrows]
    lines += [f"  classDef {kind} fill:{COLORS[kind]},stroke:#595959,color:#000000" for kind in kinds]
    return "\n".join(lines)


def _mermaid_string(text: str) -> str:
    """A quoted string; characters that are syntax in Mermaid or HTML are replaced by their codes."""
    coded = "".join(f"#{ord(character)};" if character in '"#&<>`\\' else character for character in text)
    return '"' + coded.replace("\n", "<br>") + '"'


def _lines(box: Box) -> str:
    return "\n".join(lines_of(box))


def draw(
    output: Tensor,
    *,
    names: Names | None = None,
    fold: bool = True,
    profile: Profile | None = None,
    path: str | PathLike[str] | None = None,
) -> Figure:
    """A picture of the graph, top to bottom; saved to `path` if given (PNG, SVG or PDF by its suffix).

    Text keeps its size and the figure grows with the graph; a long graph continues in further columns. A leaf that is
    used again further down is drawn again there. Another box that is used far away is drawn there by its number in
    `to_text`, dashed.
    """
    figure = picture(read_graph(output, names=names, fold=fold, profile=profile))
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
