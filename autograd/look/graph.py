"""`Graph`: the graph of a result as an object that shows itself, as text in a terminal and drawn in a notebook."""

from __future__ import annotations

from ..tensor import Tensor
from .draw import draw, to_text
from .drawing import Names, Profile
from .html import html_picture


class Graph:
    """The graph of `output`, with the options of `draw`. Errors: those of `to_text`, when it is shown."""

    def __init__(
        self, output: Tensor, *, names: Names | None = None, fold: bool = True, profile: Profile | None = None
    ) -> None:
        self._output, self._names, self._fold, self._profile = output, names, fold, profile

    def __repr__(self) -> str:
        return to_text(self._output, names=self._names, fold=self._fold, profile=self._profile)

    def _repr_html_(self) -> str:
        figure = draw(self._output, names=self._names, fold=self._fold, profile=self._profile)
        return html_picture(figure, f"graph with the lines {self!r}")
