"""Rows: a list of them acts in order, each on the one or two elements that it names, in place; in several sweeps.

A row f changes entries s of its two elements and its own entries l, such as an impulse: (s_a', s_b', l') = f(s_a, s_b,
l, ...). This is the iteration of Gauss and Seidel, such as projected impulses of constraints. All rows of one kind act
before those of the next, in each sweep. Each row saves the entries that it replaces, so that memory grows with rows and
sweeps but not with elements. The adjoint goes through the rows backwards: it restores what a row replaced, and takes
the adjoints of the new entries to those of the old ones. The tangent goes forwards along with the rows.

The order is that of the list. Rows that a step switches on and off read a number of their own that says so. Several
rows that are projected together, such as those of friction, are one row with a vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from simphys.autograd.errors import InputError
from simphys.simulator import Array

from .action import Site, Slot
from .function import declare
from .pattern import Source
from .program import Domain, Op, Value, View
from .relation import read_relation
from .row_text import RowText, saved_name
from .scope import Scope, hidden
from .sequence_call import Call, Parameters, counts_of
from .sequence_pattern import SequencePattern


class Row(NamedTuple):
    """Rows of one kind."""

    func: Any
    """Element function of a row, whose results replace entries of the state."""
    parameters: Parameters
    """Origin of its parameters: `own` ones are of the row, `both` ones of its two elements."""
    replaces: Sequence[str]
    """Parameters, entries of the state, that the results replace."""
    ends: str
    """Attribute of the model with the two elements of each row, [R, 2]; -1 is none, and reads as 0."""


def rows(*, state: Sequence[str], kinds: Sequence[Row], over: str, kept: Sequence[str] = (), sweeps: str = "") -> Any:
    """Declare a sub-step in which rows act one after the other on the elements that they name.

    - `state`: arrays of the elements that rows change; `kept`: arrays of rows that they change, such as impulses. The
      results have the same names.
    - `kinds`: the rows, in order.
    - `over`: the index set of the elements, such as "bodies".
    - `sweeps`: attribute of the model with the number of sweeps over all rows; one by default.

    Returns a Function, to be applied to the model and the arrays: the state, what is kept, then others in the order in
    which the functions name them first.
    """
    return declare(RowSequence(state, kinds, over=over, kept=kept, sweeps=sweeps))


class RowSequence(SequencePattern):
    """The pattern of `rows`."""

    guards = True
    row_us = 0.03

    def __init__(
        self, state: Sequence[str], kinds: Sequence[Row], *, over: str, kept: Sequence[str], sweeps: str
    ) -> None:
        self.over, self._sweeps = over, sweeps
        fields = (*state, *kept)
        self.kinds = [(Call(kind.func, _of_rows(kind.parameters), kind.replaces, fields), kind.ends) for kind in kinds]
        sources = {name: Source("own", name) for name in state} | {name: Source("row", name) for name in kept}
        title = "".join([word.capitalize() for word in over.split("_")])
        self._set_up(f"{title}InRows", fields, [call for call, _ in self.kinds], sources)
        self._ends: dict[str, str] = {}
        for call, ends in self.kinds:
            for source in call.sources.values():
                if source.kind == "row" and self._ends.setdefault(source.field, ends) != ends:
                    found = f"{self._ends[source.field]} and {ends}"
                    raise InputError(call.label, f"{source.field} belongs to one kind of rows", found, "Split it.")
        missing = [name for name in kept if name not in self._ends]
        if missing:
            remedy = "Name parameters that take it."
            raise InputError(self.source, "a row reads what is kept", ", ".join(missing), remedy)

    def cost_us(self, op: Op) -> float:
        sweeps, *counts = counts_of(op)
        return self.row_us * sweeps * sum(counts)

    def count_rounds(self, op: Op) -> int:
        sweeps, *counts = counts_of(op)
        return sweeps * sum(counts) + op.domain.size

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.own_domain(inputs)
        relations: dict[str, Array] = {}
        domains = {}
        for _, ends in self.kinds:
            count = len(getattr(model, ends, ()))
            relations[ends] = read_relation(model, ends, (count, 2), domain.size, self.source)
            domains[ends] = Domain(ends, count)
        views = {}
        for name, value in inputs.items():
            if isinstance(value, Value):
                index_set = domains[self._ends[name]] if self.sources[name].kind == "row" else domain
                if self.sources[name].kind == "row" and value.shape[:1] != (index_set.size,):
                    constraint = f"{self.sources[name].field} has an entry for each of the {index_set.name}"
                    raise InputError(self.source, constraint, f"shape {value.shape}", f"Pass {index_set.size}.")
                views[name] = self.view(name, value, index_set)
        sweeps = self.read_count(model, self._sweeps) if self._sweeps else 1
        counts = tuple([domains[ends].size for _, ends in self.kinds])
        op = Op(self, inputs, domain, views, relations=relations, variant=(sweeps, *counts))
        op.outputs = tuple([Value(n, (views[n].domain.size, *views[n].element), "local", views[n]) for n in self.state])
        return op

    def text(self, site: Site, op: Op, scope: Scope) -> RowText:
        return RowText(site, op, scope)

    def make_work(self, op: Op) -> dict[str, Slot]:
        found = {name: Slot("adjoint", self._hidden(op, name, "along")) for name in self.state}
        sweeps, *counts = counts_of(op)
        for number, (call, _) in enumerate(self.kinds):
            many = Domain(f"acts_of_kind_{number}", sweeps * counts[number])
            for source in call.replaces:
                name = saved_name(number, source)
                view = View(many, op.views[source.field].element)
                found[name] = Slot("adjoint", hidden(f"{op.outputs[0].name}_{name}", many, view))
        return found


def _of_rows(parameters: Parameters) -> dict[str, Source]:
    """Return the sources of parameters, whose own ones are of rows."""
    found = parameters.sources()
    return {p: source._replace(kind="row") if p in parameters.own else source for p, source in found.items()}
