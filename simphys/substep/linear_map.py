"""Linear maps of arrays: the tangent of such a sub-step is the same map, and its adjoint the transposed one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

from simphys.numerics.element import Element, element

from .pattern import Pattern, Source, camel_case
from .program import Op
from .scope import Scope


@element
def entry(a):
    return a


@entry.adjoint
def adj_entry(a, adj):
    return adj


@entry.tangent
def jvp_entry(a, da):
    return da


class LinearMap(Pattern):
    """Base of the patterns of linear maps, which are named like their result."""

    def __init__(self, result: str, sources: Mapping[str, Source], *, over: str) -> None:
        self.element: Element = entry.element
        self.name, self.source, self.over = camel_case(result), f"{type(self).__name__}({result})", over
        self.take_arrays(sources, {result: ()})

    def forward(self, op: Op, scope: Scope) -> None:
        self.map(op, scope, "value")

    def tangent(self, op: Op, scope: Scope) -> None:
        self.map(op, scope, "tangent")

    @abstractmethod
    def map(self, op: Op, scope: Scope, kind: Literal["value", "tangent"]) -> None:
        """Append the actions that map the values of the inputs, or their tangents."""

    def list_terms(self, op: Op, scope: Scope, kind: Any) -> list[str]:
        """List the inputs that are not zero, or those that move."""
        return [name for name in op.inputs if not scope.is_zero(op.array(name), kind)]
