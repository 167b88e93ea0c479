"""Sub-steps that depend on parameters alone: their results are computed once for a rollout, not in each step."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array, Arrays
from simphys.substep.action import PassName
from simphys.substep.launch import KeyedArrays, run_pass
from simphys.substep.program import Op, Program, Value

REMEMBERED_BYTES = 2**16
"""Largest size of the parameters of a sub-step whose results are kept for the next rollout."""


@dataclass(frozen=True, eq=False)
class Prologue:
    """These sub-steps. All arrays have a leading axis, of the batch members or, where these share the values, of 1.

    `alike`: results do not depend on the number of threads.
    """

    ops: tuple[Op, ...]
    _last: dict[Op, tuple[Any, Arrays]] = field(default_factory=dict)
    """Inputs, to the bit, and results of the last time: a fit changes some parameters, and leaves the others."""

    @property
    def results(self) -> list[Value]:
        return [value for op in self.ops for value in op.outputs]

    def find_dependent(self, params: Collection[str]) -> set[str]:
        """Find the names of the results that depend on some parameters."""
        found = set(params)
        for op in self.ops:
            if any([value.varies and value.name in found for value in op.values()]):
                found |= {value.name for value in op.outputs}
        return found - set(params)

    def compute(self, params: Arrays, *, alike: bool) -> Arrays:
        """Compute all results, by name, from the parameters."""
        known = dict(params)
        for op in self.ops:
            known |= self._compute(op, known, alike=alike)
        return {value.name: known[value.name] for value in self.results}

    def _compute(self, op: Op, known: Arrays, *, alike: bool) -> Arrays:
        """Compute a sub-step's results, or return those of the last time if its inputs are still the same."""
        given = [known[value.name] for value in op.values() if value.data is None]
        if sum([array.nbytes for array in given]) > REMEMBERED_BYTES:
            return _run(op, "forward", known, {}, alike=alike)
        key = runtime.session(), alike, [(array.shape, array.tobytes()) for array in given]
        before, results = self._last.get(op, (None, {}))
        if before != key:
            results = _run(op, "forward", known, {}, alike=alike)
            for array in results.values():
                array.flags.writeable = False
            self._last[op] = key, results
        return results

    def push(self, values: Arrays, tangents: Arrays, *, alike: bool) -> Arrays:
        """Compute the tangents of the results from `values` of parameters and results, and tangents of parameters."""
        known = dict(tangents)
        for op in self.ops:
            if any([value.name in known for value in op.values()]):
                known |= _run(op, "tangent", values, known, alike=alike)
        return {value.name: known[value.name] for value in self.results if value.name in known}

    def pull(self, values: Arrays, adjoints: Arrays, *, alike: bool) -> None:
        """Add to the adjoints of parameters, by name, those that come from the adjoints of results. These have members.

        Parameters without an entry among the adjoints are left out. Where the members share all inputs of a sub-step,
        it is pulled once, for the sum of their adjoints, and the first member gets what it gives.
        """
        inner = {value.name for value in self.results}
        for op in reversed(self.ops):
            given = {value.name: adjoints[value.name] for value in op.outputs if value.name in adjoints}
            if not given:
                continue
            if all([len(values[value.name]) == 1 for value in op.values() if value.data is None]):
                given = {name: adjoint.sum(axis=0, keepdims=True) for name, adjoint in given.items()}
            for name, found in _run(op, "adjoint", values, given, alike=alike).items():
                if name in adjoints:
                    adjoints[name][: len(found)] += found
                elif name in inner:
                    adjoints[name] = found


def split_prologue(program: Program) -> tuple[Prologue, Program]:
    """Split a program into its prologue and the program of each step, in which the results count as parameters."""
    fixed: set[Value] = {*program.params.values()}
    state = set(program.result.values())  # a field of the new state is written in each step
    ops = []
    for op in program.ops:
        if all([value in fixed or not value.varies for value in op.values()]) and state.isdisjoint(op.outputs):
            ops.append(op)
            fixed |= set(op.outputs)
    results = {value.name: value for op in ops for value in op.outputs}
    for value in results.values():
        value.role = "param"
    rest = tuple([op for op in program.ops if op not in ops])
    return Prologue(tuple(ops)), replace(program, ops=rest, params={**program.params, **results})


def _run(op: Op, name: PassName, values: Arrays, others: Arrays, *, alike: bool) -> Arrays:
    """Run a pass of a sub-step for each batch member. `others` has the tangents, or the adjoints of the results.

    Returns values or tangents of the results, or adjoints of the inputs, by name.
    """
    arrays: KeyedArrays = {}
    for n, value in op.arrays.items():
        arrays["value", n] = value.data[None] if value.data is not None else values[value.name]
        if name == "tangent" and value.varies:
            arrays["tangent", n] = others.get(value.name, np.zeros_like(arrays["value", n]))
    if name != "forward" and op.pattern.reads_results:
        arrays |= {("value", number): values[value.name] for number, value in enumerate(op.outputs)}
    if name == "adjoint":
        members = max([len(others[v.name]) for v in op.outputs if v.name in others])
        for number, value in enumerate(op.outputs):
            zeros = np.zeros((members, *value.shape), next(iter(arrays.values())).dtype)
            arrays["adjoint", number] = others.get(value.name, zeros)
    count = max([len(array) for array in arrays.values()])
    results = [
        run_pass(op, name, {key: _member(array, b) for key, array in arrays.items()}, alike=alike) for b in range(count)
    ]
    names = [v.name for v in op.values() if v.varies] if name == "adjoint" else [v.name for v in op.outputs]
    totals: Arrays = {}
    for n, found in zip(names, zip(*results, strict=True), strict=True):
        totals[n] = totals[n] + np.stack(found) if n in totals else np.stack(found)  # a value may be two inputs
    return totals


def _member(array: Array, number: int) -> Array:
    return array[number if len(array) > 1 else 0]
