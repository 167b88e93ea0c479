"""Sub-steps in which each entry of arrays of one shape is computed by itself, such as a velocity at faces of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.autograd.errors import InputError

from .function import declare
from .loops import LoopPattern
from .pattern import name_sources
from .program import WHOLE, Domain, Op, Value, View


def per_entry(
    func: Any,
    *,
    own: Mapping[str, str],
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
    results: Mapping[str, str] | None = None,
) -> Any:
    """Declare a sub-step that applies an element function to each entry, a number, of arrays of one shape.

    Each mapping goes from parameters of the element function to names of arrays, as in `per_element`. The results have
    the shape of the `own` arrays. A `constant` is a number, or an array of that shape.

    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    sources = name_sources(own=own, shared=shared, constant=constant)
    return declare(PerEntry(func, sources, results=results, over="entries"))


class PerEntry(LoopPattern):
    """The pattern of `per_entry`."""

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        own = {name: v for name, v in inputs.items() if self.sources[name].kind == "own" and isinstance(v, Value)}
        shapes = {value.shape for value in own.values()}
        if len(shapes) != 1:
            found = ", ".join([f"{self.sources[name].field} of {list(value.shape)}" for name, value in own.items()])
            raise InputError(self.source, "its arrays have one shape", found or "none", "Correct them.")
        shape = shapes.pop()
        domain = Domain(f"entries_{'_'.join(map(str, shape))}", next(iter(own.values())).size)
        views = {
            name: View(domain, ()) if value.shape == shape else View(WHOLE, value.shape)
            for name, value in inputs.items()
            if isinstance(value, Value)
        }
        op = Op(self, inputs, domain, views)
        op.outputs = tuple([Value(name, shape, "local", View(domain, ())) for name in self.results])
        return op
