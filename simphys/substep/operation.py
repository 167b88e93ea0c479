"""Operations on whole arrays, such as the solution of a linear system: sub-steps that no loop over elements gives.

    def relax(model, heating, conductivity): ...
    def adj_relax(model, conductivity, change, adj_change): ...
    def jvp_relax(model, conductivity, change, dheating, dconductivity): ...

    Relax = operation(relax, adjoint=adj_relax, tangent=jvp_relax, results={"change": "heating"})

These are functions of NumPy arrays that run on the host, and may launch kernels of their own. The adjoint and the
tangent name what they read: inputs, results, and adj_<result> or d<input>. An engine keeps these arrays, and no others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError, MissingJvp
from simphys.simulator import Array, Shape

from .action import Access, Action, ArrayKey, Kind, Moment, PassName, Slot, SlotArrays, no_loop
from .function import declare
from .pattern import Pattern, Source, camel_case
from .program import WHOLE, Domain, ElementView, Op, Value
from .scope import Scope, adjoint_slot

Run = Callable[..., Any]
Like = str | Callable[[Any], Shape]
"""Name of the input whose shape a result has, or a function of the model that gives the shape."""
EXTRAS = ("out", "moment", "wanted")
"""Parameters that are neither inputs nor results."""
Finish = Callable[[Any, PassName, dict[str, Any]], None]


def operation(
    function: Run,
    *,
    adjoint: Run,
    results: Mapping[str, Like],
    tangent: Run | None = None,
    name: str = "",
    is_cheap: bool = False,
    work_arrays: int = 0,
    idle: Mapping[str, str] | None = None,
    finish: Finish | None = None,
) -> Any:
    """Declare a sub-step that computes whole arrays from whole arrays. Gradients flow to all inputs.

    - `function`: takes the model and the inputs; returns the results: an array, or a tuple of arrays.
    - `adjoint`: takes the model and what it reads, by name; returns an adjoint for each input. None stands for 0.
    - `tangent`: likewise, with d<input> for each input that it reads; returns a tangent for each result.
    - `results`: names of the results, with their shapes.
    - `is_cheap`: True if results are computed again for the adjoint, rather than stored for each step.
    - `work_arrays`: number of arrays, of the size of the largest input, that it needs while it runs.
    - `name`: name of the Function, by default that of `function` in camel case.
    - `idle`: for an input, another one that is the result wherever the first is zero. An engine then leaves it out.
    - `finish`: a function of the model, the pass and an engine's notes, for the end of each pass through a segment.

    Functions may have further parameters: `out`, the memory of the results, in which case they return nothing;
    `moment`, a Moment, or None outside an engine; and, in the adjoint, `wanted`, the names of the inputs whose adjoints
    are wanted. An adjoint's `out` has the memory of some of the adjoints that it returns, by the name of the input.
    It may be that of an adjoint that it reads.

    Returns a Function, to be applied to the model and the inputs.
    """
    made = Operation(function, adjoint, tangent, results)
    made.name = name or made.name
    made.is_cheap, made.work_arrays, made.idle, made.finish = is_cheap, work_arrays, idle or {}, finish
    return declare(made)


class Operation(Pattern):
    """The pattern of `operation`."""

    on_host = True
    work_arrays = 0
    finish: Finish | None = None

    def __init__(self, function: Run, adjoint: Run, tangent: Run | None, results: Mapping[str, Like]) -> None:
        name = function.__name__
        self.name, self.source, self.over = camel_case(name), f"Operation({name})", ""
        self.take_arrays({n: Source("own", n) for n in _parameters(function) if n not in EXTRAS}, {})
        self._likes = dict(results)
        self._runs = {"forward": function, "adjoint": adjoint, "tangent": tangent}
        self._reads = {kind: _parameters(run) for kind, run in self._runs.items() if run is not None}
        values = {*self.arguments, *results}
        known = {
            "adjoint": values | {f"adj_{n}" for n in results},
            "tangent": values | {f"d{n}" for n in self.varying},
        }
        for kind, names in known.items():
            unknown = [
                parameter
                for parameter in self._reads.get(kind, ())
                if parameter not in names and parameter not in EXTRAS
            ]
            if unknown:
                constraint = f"its {kind} reads some of {', '.join(sorted(names))}"
                raise InputError(self.source, constraint, ", ".join(unknown), "Correct its parameters.")

    def require_tangent(self) -> None:
        if self._runs["tangent"] is None:
            raise MissingJvp(f"{self.source} has no tangent. Pass tangent=..., or use reverse mode.")

    @property
    def reads_results(self) -> bool:
        return any([name in self._likes for kind in ("adjoint", "tangent") for name in self._reads.get(kind, ())])

    def cost_us(self, op: Op) -> float:
        return 0.0  # its own loops choose their threads by themselves

    def work_numbers(self, op: Op) -> int:
        """Count the numbers that it needs while it runs, approximately."""
        return self.work_arrays * max([value.size for value in op.values()])

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        op = Op(self, inputs, WHOLE, {}, model=ref(model))
        op.outputs = tuple([self._make_output(model, inputs, name, like) for name, like in self._likes.items()])
        return op

    def _make_output(self, model: Any, inputs: Mapping[str, Value | float], name: str, like: Like) -> Value:
        if not isinstance(like, str):
            return Value(name, like(model), "local")
        source = inputs[like]
        assert isinstance(source, Value), "all inputs are arrays"
        return Value(name, source.shape, "local", source.view)

    # --- the three passes of an engine: calls between its launches

    def forward(self, op: Op, scope: Scope) -> None:
        self._append_results(op, scope, "forward", "value")

    def tangent(self, op: Op, scope: Scope) -> None:
        self.require_tangent()
        self._append_results(op, scope, "tangent", "tangent")

    def _append_results(self, op: Op, scope: Scope, name: PassName, kind: Kind) -> None:
        """Append the call that computes the results, or their tangents."""
        targets = [Slot(kind, value) for value in op.outputs]
        written = [slot for slot in targets if slot not in scope.frozen]
        call, slots = self._bind(op, name), self._slots(op, name)
        still = {slot for slot in slots.values() if slot.kind == "tangent" and not scope.moves(slot.value)}

        def run(arrays: SlotArrays, moment: Moment) -> None:
            memory = [arrays[slot] if slot in written else _make_zeros(slot) for slot in targets]
            given = {n: _make_zeros(slot) if slot in still else arrays[slot] for n, slot in slots.items()}
            call(given, memory, (), moment)

        scope.add(_make_call(run, [slot for slot in slots.values() if slot not in still], written))

    def adjoint(self, op: Op, scope: Scope) -> None:
        wanted, adds, targets = tuple([n for n in self.varying if scope.wants(op.inputs[n])]), {}, {}
        missing = {Slot("adjoint", value) for value in op.outputs if not scope.has_adjoint(value)}
        call, slots = self._bind(op, "adjoint"), self._slots(op, "adjoint")
        for name in wanted:
            value = op.array(name)
            targets[name] = adjoint_slot(value)
            adds[name] = scope.begin(targets[name], value.view or whole_view(value), "own")

        def run(arrays: SlotArrays, moment: Moment) -> None:
            memory = {name: arrays[slot] for name, slot in targets.items()}
            given = {n: _make_zeros(slot) if slot in missing else arrays[slot] for n, slot in slots.items()}
            out = {name: array for name, array in memory.items() if not adds[name]}
            found = dict(zip(self.varying, call(given, out, wanted, moment), strict=True))
            for name, values in _apart(found, memory).items():
                if name not in memory or values is memory[name]:
                    continue
                if not adds[name]:
                    memory[name][...] = 0 if values is None else values
                elif values is not None:
                    np.add(memory[name], values, out=memory[name])

        reads = [slot for slot in slots.values() if slot not in missing]
        reads += [targets[name] for name in wanted if adds[name]]
        scope.add(_make_call(run, reads, targets.values(), "own"))

    # --- a pass by itself

    def run_alone(self, op: Op, name: PassName, given: Mapping[ArrayKey, Array]) -> list[Array]:
        """Run a pass. Returns the results, their tangents, or the adjoints of the inputs."""
        real, call = runtime.real_dtype(), self._bind(op, name)
        arrays = {n: given[self._key(n)] for n in self._reads[name] if n not in EXTRAS}
        if name != "adjoint":
            memory = [np.empty(value.shape, real) for value in op.outputs]
            call(arrays, memory, (), None)
            return memory
        return [
            np.zeros(value.shape, real) if array is None else np.array(array, real, order="C")
            for value, array in zip(op.values(), call(arrays, {}, self.varying, None), strict=True)
        ]

    # --- calls

    def _bind(self, op: Op, name: PassName) -> Callable[..., Sequence[Any]]:
        """Make a function that calls one of the given ones with arrays by parameter, and with what it wants besides.

        Results and their tangents go to the sequence `out`.
        """
        run, model = self._runs[name], op.model
        assert run is not None and model is not None, "checked by the caller"
        extras = [n for n in EXTRAS if n in self._reads[name]]
        fills = name != "adjoint" and "out" not in extras
        if name == "adjoint":
            expected = {f"the adjoint of {n}": v.shape for n, v in op.arrays.items()}
        else:
            expected = {n if name == "forward" else f"the tangent of {n}": v.shape for n, v in self._named(op)}

        def call(arrays: dict[str, Any], out: Any, wanted: tuple[str, ...], moment: Moment | None) -> Sequence[Any]:
            for extra in extras:
                if extra == "out":
                    arrays[extra] = out[0] if len(out) == 1 and name != "adjoint" else out
                else:
                    arrays[extra] = moment if extra == "moment" else wanted
            found = run(model(), **arrays)
            found = found if isinstance(found, tuple) else (found,)
            if fills or name == "adjoint":
                self._require_arrays(name, found, expected)
            if fills:
                for memory, values in zip(out, found, strict=True):
                    memory[...] = 0 if values is None else values
            return found

        return call

    def _named(self, op: Op) -> list[tuple[str, Value]]:
        return list(zip(self._likes, op.outputs, strict=True))

    def _require_arrays(self, name: PassName, found: Sequence[Any], expected: Mapping[str, Shape]) -> None:
        """Raise InputError unless a function returned real arrays of these shapes, or None where it stands for 0."""
        if len(found) != len(expected):
            constraint = f"its {name} returns {len(expected)} values: {', '.join(expected)}"
            raise InputError(self.source, constraint, f"{len(found)} values", "Return one array for each, in order.")
        for array, (label, shape) in zip(found, expected.items(), strict=True):
            if array is None and name != "forward":
                continue
            kind, size = getattr(array, "dtype", np.asarray(array).dtype), np.shape(array)
            if kind.kind != "f" or size != shape:
                constraint = f"{label}, which its {name} returns, is an array of floats of shape {list(shape)}"
                raise InputError(self.source, constraint, f"{kind} of shape {list(size)}", "Return such an array.")

    def _slots(self, op: Op, name: PassName) -> dict[str, Slot]:
        """Slots of everything that one of the functions reads, by parameter."""
        return {n: _slot(op, self._key(n)) for n in self._reads[name] if n not in EXTRAS}

    def _key(self, parameter: str) -> ArrayKey:
        """Kind of an array, and the input's name or the output's number that it belongs to."""
        names = list(self._likes)
        if parameter in self.arguments:
            return "value", parameter
        if parameter in names:
            return "value", names.index(parameter)
        if parameter.startswith("adj_"):
            return "adjoint", names.index(parameter[4:])
        return "tangent", parameter[1:]


def whole_view(value: Value) -> ElementView:
    """View of an array as numbers of an index set of its own."""
    return ElementView(Domain(f"all_{value.name}", value.size), ())


def _slot(op: Op, key: ArrayKey) -> Slot:
    kind, owner = key
    value = op.outputs[owner] if isinstance(owner, int) else op.inputs[owner]
    assert isinstance(value, Value), "all inputs are arrays"
    return Slot(kind, value)


def _apart(found: Mapping[str, Any], memory: Mapping[str, Array]) -> dict[str, Any]:
    """Copy results that lie in memory to which another result is written before they are read."""
    return {
        name: values.copy()
        if isinstance(values, np.ndarray)
        and any([np.may_share_memory(values, target) for other, target in memory.items() if other != name])
        else values
        for name, values in found.items()
    }


def _make_zeros(slot: Slot) -> Array:
    return np.zeros(slot.value.shape, runtime.real_dtype())


def _make_call(
    run: Callable[[SlotArrays, Moment], None], reads: Iterable[Slot], writes: Iterable[Slot], access: Access = "other"
) -> Action:
    """Make the action of a call; with access "own", the memory of what it writes may be that of what it reads."""
    return Action(WHOLE, no_loop, dict.fromkeys(reads, access), dict.fromkeys(writes, access), call=run)


def _parameters(function: Run) -> tuple[str, ...]:
    """Names of a function's parameters, without the model."""
    return tuple(inspect.signature(function).parameters)[1:]
