"""Launches of a single sub-step: the loops of one pass, each over its whole index set, compiled once for a shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels.launch import Kernel
from simphys.simulator import Array, Shape

from .action import ArrayKey, PassName, Slot
from .draft import Draft
from .expressions import size_name
from .place import Place
from .program import Op, Value
from .schedule import find_locals, schedule
from .scope import Scope
from .text import domains_of, find_names, find_written, group_options, launch_lines, list_parameters, make_kernel

KeyedArrays = dict[ArrayKey, Array]

PIECES_PER_THREAD = 8
"""Pieces of a heavy loop per CPU thread, to balance the load."""


@dataclass(frozen=True)
class _Prepared:
    """A compiled pass."""

    kernel: Kernel
    arrays: tuple[tuple[ArrayKey | None, Shape, bool], ...]
    """Key of the array of each argument, None for a workspace, with its shape: its elements along the first axis.
    True for an array that the loops take component by component."""
    results: tuple[tuple[ArrayKey, Shape], ...]
    changed: frozenset[ArrayKey]
    """Arrays among those given that the loops overwrite."""
    relations: tuple[str, ...]
    numbers: tuple[str, ...]
    sizes: tuple[int, ...]


def run_pass(op: Op, name: PassName, given: KeyedArrays, *, alike: bool = False) -> list[Array]:
    """Run one pass. Returns the results: values or tangents of the outputs, or adjoints of the varying inputs.

    `given` has the values of the inputs, and their tangents or the adjoints of the outputs. With `alike`, the results
    do not depend on the number of threads.
    """
    if op.pattern.on_host:
        found: list[Array] = op.pattern.run_alone(op, name, given)
        return found
    cost = op.pattern.cost_us(op)
    parallel = cost > runtime.PARALLEL_WORK_US if alike else runtime.parallel(cost)
    passes, key = _passes_of_ops().setdefault(op, {}), (name, parallel, alike)
    if key not in passes:
        passes[key] = _prepare(op, *key)
    prepared = passes[key]
    real = runtime.real_dtype()
    made = {key: np.zeros(shape, real) for key, shape in prepared.results}
    known = {**given, **made}
    known |= {key: known[key].copy() for key in prepared.changed}
    arrays = [
        np.zeros(shape, real) if key is None else _arrange(known[key], shape, by_component=by_component)
        for key, shape, by_component in prepared.arrays
    ]
    relations = [op.relations[key] for key in prepared.relations]
    numbers = [op.inputs[key] for key in prepared.numbers]
    prepared.kernel(*arrays, *relations, *numbers, *prepared.sizes, PIECES_PER_THREAD * runtime.settings().threads)
    return list(made.values())


def _prepare(op: Op, name: PassName, parallel: bool, alike: bool) -> _Prepared:
    """Compile a pass, or find it compiled for the same shapes."""
    shapes = [v.shape if isinstance(v, Value) else None for v in op.inputs.values()]
    key = (op.pattern, name, parallel, alike, tuple(shapes), op.domain, op.onto, op.variant)
    table: dict[Any, _Prepared] = _prepared_passes()
    if key not in table:
        table[key] = _compile(_isolate(op), name, parallel, alike)
    return table[key]


def _isolate(op: Op) -> Op:
    """Copy a sub-step with values of its own, which no other sub-step reads, and index sets with distinct names."""

    def copy(name: str, value: Value | float) -> Value | float:
        if not isinstance(value, Value):
            return value
        return Value(name, value.shape, "local" if value.varies else "constant")

    inputs = {name: copy(name, value) for name, value in op.inputs.items()}
    outputs = tuple([Value(f"result_{k}", value.shape, "local", value.view) for k, value in enumerate(op.outputs)])
    isolated = replace(op, inputs=inputs, outputs=outputs)
    Draft({}).name_domains(isolated)
    for name, value in isolated.arrays.items():
        value.view = isolated.views[name]
    op.pattern.arrange(isolated)
    return isolated


def _arrange(array: Array, shape: Shape, *, by_component: bool) -> Array:
    """Arrange an array as the loops take it: elements along the first axis, or component by component."""
    if by_component:
        return np.ascontiguousarray(array.reshape(shape).T).reshape(-1)
    return np.ascontiguousarray(array).reshape(shape)


@runtime.cached
def _passes_of_ops() -> WeakKeyDictionary[Op, dict[tuple[PassName, bool, bool], _Prepared]]:
    """The compiled passes of sub-steps that were run before, for the settings in force."""
    return WeakKeyDictionary()


@runtime.cached
def _prepared_passes() -> dict[Any, _Prepared]:
    """The compiled passes for the settings in force."""
    return {}


def _compile(op: Op, name: PassName, parallel: bool, alike: bool) -> _Prepared:
    names = _slot_names(op)
    varying = [value for value in op.values() if value.varies]
    scope = Scope(gathers=parallel, wanted=varying, moving=varying, numbers_vary=True, alike=alike)
    if name == "adjoint":
        scope.started |= {Slot("adjoint", value) for value in op.outputs}
    if name == "adjoint" and op.pattern.is_complex:
        scope.started |= {Slot("adjoint", value) for value in varying}  # results are zero at first
    kind: Any = {"forward": "value", "adjoint": "adjoint", "tangent": "tangent"}[name]
    outputs = op.outputs[: len(op.outputs) - op.pattern.hidden_results] if name == "tangent" else op.outputs
    results = [Slot(kind, value) for value in (varying if name == "adjoint" else outputs)]
    scope.kept |= set(results)
    run: Callable[[Op, Scope], None] = getattr(op.pattern, name)
    run(op, scope)
    groups = schedule(scope.actions)
    inside = find_locals(groups, names)
    filled = [slot for slot in results if slot.value.size]
    rest = [slot for group in groups for slot in sorted(group.slots(), key=str) if slot not in inside]
    memory = dict.fromkeys([*filled, *rest])
    taken = [slot for slot in results if not slot.value.components_first]
    assert not any([slot.by_component for slot in taken]), "results are arrays of vectors"
    places = {
        slot: Place(f"a{number}", "0", slot.by_component, slot.value.is_flat) for number, slot in enumerate(memory)
    }
    cpu = not runtime.settings().on_gpu
    body = []
    for group in groups:
        body += launch_lines(group, places, {}, parallel=parallel, batched=False, cpu=cpu)
    seen = [*op.views.values(), *[slot.value.view for slot in memory if slot.value.view is not None]]
    domains = [*[view.domain for view in seen], *domains_of(groups)]
    named = find_names(body)
    sizes = {size_name(domain): domain.size for domain in domains if size_name(domain) in named}
    elements = {places[slot].array: slot.memory_element for slot in memory}
    parameters = list_parameters(elements, scope.relations, scope.numbers, [*sizes, "pieces"])
    options, title = group_options(groups) | {"alike": alike}, f"{name}_{op.pattern.element.name}"
    written = find_written(groups, places)
    kernel = make_kernel(title, parameters, body, scope.functions, runtime.real(), written, **options)
    return _Prepared(
        kernel,
        tuple([(names.get(slot), *_arrangement(slot)) for slot in memory]),
        tuple([(names[slot], slot.value.shape) for slot in results]),
        frozenset([names[slot] for group in groups for slot in group.writes if slot in names and slot not in results]),
        tuple([next(n for n, a in op.relations.items() if a is array) for array in scope.relations.values()]),
        tuple([key.removeprefix(f"{op.outputs[0].name}_") for key in scope.numbers]),
        tuple(sizes.values()),
    )


def _arrangement(slot: Slot) -> tuple[Shape, bool]:
    """Shape of an array with its elements along the first axis, and True if the loops take it component by component.

    An array that has its components first is taken as it is.
    """
    value = slot.value
    if value.components_first or value.is_flat:
        return (value.size,), False
    return (value.count, *value.element), slot.by_component


def _slot_names(op: Op) -> dict[Slot, ArrayKey]:
    """Names of the slots of the inputs and outputs."""
    kinds: tuple[Any, ...] = ("value", "adjoint", "tangent")
    found: dict[Slot, ArrayKey] = {}
    for kind in kinds:
        found |= {Slot(kind, value): (kind, name) for name, value in op.arrays.items()}
        found |= {Slot(kind, value): (kind, number) for number, value in enumerate(op.outputs)}
    return found
