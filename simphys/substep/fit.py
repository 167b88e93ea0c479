"""Fit of arrays to a sub-step: the lengths of its index sets, and the shapes that its element functions take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from simphys.autograd.errors import InputError
from simphys.numerics.assigned_anew import require_kept_vectors
from simphys.numerics.element import Element
from simphys.numerics.outside import Outside
from simphys.simulator import Shape

from .program import WHOLE, Op, Value


class Use(NamedTuple):
    """An element function as a sub-step calls it."""

    element: Element
    varying: tuple[str, ...]
    """Parameters that gradients flow to."""
    inputs: Mapping[str, Shape]
    """Shape of each parameter."""
    results: Mapping[str, Shape]
    """Shape that each result has, by the result's name."""

    def require_fit(self) -> None:
        """Raise InputError where the element function or a rule returns other shapes than declared, or lacks a name."""
        forward, adjoint, tangent = self.element.forward, self.element.adjoint, self.element.by_hand
        assert adjoint is not None, "checked when declared"
        for rule in (forward, adjoint, tangent):
            if rule is not None:
                rule.require_names()
                require_kept_vectors(rule.func)
        inputs, results = tuple(self.inputs.values()), tuple(self.results.values())
        forward.require_shapes(inputs, self.results)
        read = results if self.element.results_read(adjoint) else ()
        expected = {f"the adjoint of {name}": self.inputs[name] for name in self.varying}
        adjoint.require_shapes((*inputs, *read, *results), expected)
        if tangent is not None:
            read = results if self.element.results_read(tangent) else ()
            moves = [self.inputs[name] for name in self.varying]
            expected = {f"the tangent of {name}": shape for name, shape in self.results.items()}
            tangent.require_shapes((*inputs, *read, *moves), expected)


def require_fit(op: Op) -> None:
    """Raise InputError for arrays that do not fit the index sets of a sub-step, or its element functions."""
    _require_lengths(op)
    uses: list[Use] = op.pattern.list_uses(op)
    for use in uses:
        use.require_fit()
        _require_distinct_constants(op, use)


def list_outside(op: Op) -> list[Outside]:
    """List the names that the compiled functions of a sub-step capture."""
    uses: list[Use] = op.pattern.list_uses(op)
    own: Outside | None = op.pattern.outside
    return [outside for use in uses for outside in use.element.list_outside()] + ([] if own is None else [own])


def _require_lengths(op: Op) -> None:
    """Raise InputError for an array without an element for each index of its set: loops would leave its memory."""
    for name, view in op.views.items():
        value = op.inputs.get(name)
        if not isinstance(value, Value) or value.size == view.domain.size * view.components:
            continue
        field = op.pattern.sources[name].field
        constraint = f"{field} has an entry for each of the {view.domain.size} {view.domain.name}"
        found = f"{value.shape[0]}" if value.shape else "a single number"
        raise InputError(op.pattern.source, constraint, found, "Correct the array, or the model.")


def _require_distinct_constants(op: Op, use: Use) -> None:
    """Raise InputError for a constant that may be numbers of the elements, or just as well a vector of all."""
    vectors = [use.inputs[name] for name in use.varying if len(use.inputs[name]) == 1]
    for name in use.inputs:
        value, source = op.inputs.get(name), op.pattern.sources.get(name)
        if source is None or source.kind != "constant" or not isinstance(value, Value) or value.shape not in vectors:
            continue
        as_vector = [value.shape if other == name else shape for other, shape in use.inputs.items()]
        of_elements = op.views[name].domain != WHOLE and op.domain.size > 1
        if of_elements and use.element.forward.find_shapes(as_vector) == tuple(use.results.values()):
            constraint = f"a constant is not as long as both the vectors and the number of {op.domain.name}"
            found = f"{source.field} of shape {list(value.shape)}"
            remedy = f"Numbers of the {op.domain.name} are a Tensor, {name} under `own`."
            raise InputError(op.pattern.source, constraint, found, f"{remedy_for_vector(name)} {remedy}")


def remedy_for_vector(name: str) -> str:
    """Say where a vector that all elements share is declared."""
    return f"A vector that all share is a field of Params, {name} under `shared`."
