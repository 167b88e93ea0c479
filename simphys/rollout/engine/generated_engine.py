"""The engine that is generated from the program of a step; see `simphys.simulator.Engine`."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels import device
from simphys.simulator import Array, Arrays, Engine, Model, Rows
from simphys.substep.program import Program, Value

from . import forms
from .arrays import as_elements, make_rows, make_zeros, put_first_row, read_rows, to_device
from .choices import choose
from .kernels import Loops
from .memory import ARRAY, FINISHED, ONCE, PROBE, Layout
from .plan import EnginePlan, StepProgram
from .repeated import Launch, Launches, StepLaunch, join_launches
from .stages import HostStage, KernelLaunch, Stage, count_steps

TASKS_PER_THREAD = 8
"""Tasks of batch members per thread: neighbours share cache lines, and several tasks balance the load."""
LOOP_ROUNDS = 65_535
"""Rounds of all its loops after which Mesa's software driver ends those of a thread."""
ROOM = 8
"""Number of times that the rounds of a launch may exceed those estimated for a forward pass: adjoints take 2 or 3."""


@dataclass(eq=False)
class Segment:
    """States of some steps, and the stored values of each step, by name: flat arrays [B, rows, size] on the device."""

    arrays: dict[str, Any]
    steps: int
    launches: Launches | None = None
    opening: Launches | None = None
    """Launch that comes before others: it computes what steps carry over."""
    made: dict[str, Any] = field(default_factory=dict)


class GeneratedEngine(Engine):
    """Engine of one rollout, for given parameters and control."""

    def __init__(
        self,
        model: Model,
        step_program: StepProgram,
        params: Arrays,
        control: Array | None,
        *,
        batch: int,
        needs: frozenset[str],
        deterministic: bool,
        tangents: Arrays | None = None,
    ) -> None:
        self.model = model
        self._program, self._prologue = step_program.program, step_program.prologue
        self.members, self.needs = batch, needs
        self._is_complex = step_program.program.is_complex
        self._alike = deterministic
        """True if results do not depend on the number of threads, not even by rounding."""
        self._given = params if control is None else {**params, "control": control}
        self._planned = frozenset(self._given) if self._is_complex else needs
        """Names of the parameters, and "control", whose adjoints are computed."""
        self._steps = 0 if control is None else control.shape[-1 - len(model.control_shape() or ())]
        self._tangents = tangents or {}
        shapes = dict(model.param_shapes())
        if control is not None:
            shapes["control"] = (self._steps, *(model.control_shape() or ()))
        self._shapes = shapes
        self._empty = {n: shape for n, shape in model.state_shapes().items() if not math.prod(shape)}
        """Shapes of the fields of the state without entries, which no loop takes."""
        self._params, self.step_program = params, step_program
        own = {name for name, value in self._given.items() if value.ndim > len(shapes[name])}
        self._own = frozenset(own | step_program.prologue.find_dependent(own if batch > 1 else ()))
        self._steps_per_launch = max(1, LOOP_ROUNDS // (ROOM * step_program.rounds))
        self._plan = self.make_plan()
        self._carried = {each.name: each.old for each in self._plan.carried}
        self._sums: Any = None
        self._workspace: dict[str, Any] = {}
        self.notes: dict[str, Any] = {}
        """Notes of operations, such as reports of solves, by name."""
        self._brought: dict[str, Any] = {}

    @functools.cached_property
    def _values(self) -> Arrays:
        """Parameters, and what the prologue makes of them, with a leading axis for batch members, or of length 1."""
        real, given = runtime.real_dtype(), self._params
        values = {n: np.asarray(p, real)[None] if p.ndim == len(self._shapes[n]) else p for n, p in given.items()}
        return values | self._prologue.compute(values, alike=self._alike)

    def make_plan(self, form: forms.Form | None = None) -> EnginePlan:
        """Make the plan of the form that suits the settings in force, or of another one that the step can have."""
        chosen = choose(self.step_program, members=self.members, own=self._own, alike=self._alike, form=form)
        return self.step_program.plan(*chosen, needs=self._planned, zeros=self._find_zeros())

    def _find_zeros(self) -> frozenset[str]:
        """Find the parameters that are zero, and whose adjoint and tangent nobody wants."""
        if self._is_complex:
            return frozenset()
        unused = self._given.keys() - self.needs - self._tangents.keys()
        return frozenset([n for n in unused if n in self._program.params and not self._given[n].any()])

    # --- memory

    def segment_bytes(self, steps: int, *, dense: bool) -> int:
        key = self.members, self._steps, dense
        if key not in self._plan.segment_bytes:
            none, one = (self._count_bytes(count, dense=dense) for count in (0, 1))
            self._plan.segment_bytes[key] = none, one - none
        fixed, of_step = self._plan.segment_bytes[key]
        return fixed + steps * of_step

    def _count_bytes(self, steps: int, *, dense: bool) -> int:
        layout, ahead = self._plan.adjoint_layout(dense=dense), self._plan.forward[0]
        state = sum([value.size for value in self._program.state.values()])
        stored = sum([value.size for value in self._plan.stored])
        on_gpu = runtime.settings().on_gpu
        numbers = (steps + 1) * state + steps * stored + (state if dense or on_gpu else 0)
        numbers += steps * sum([value.size for value in layout.rows.values()])
        numbers += self._carried_rows(steps) * sum([value.size for value in self._carried.values()])
        numbers += max([op.pattern.work_numbers(op) for op in self._program.ops if op.pattern.on_host], default=0)
        works = layout.part_numbers("work"), ahead.part_numbers("work")
        numbers += (max(works) if self._plan.shares_workspace else sum(works)) + layout.part_numbers("sums")
        if "control" in self._planned:
            numbers += math.prod(self._shapes["control"])
        if dense and on_gpu:
            numbers += (steps + 1) * state
        return numbers * self.members * runtime.real_dtype().itemsize + self._count_input_bytes()

    def _count_input_bytes(self) -> int:
        """Memory of what the prologue computes, and of copies of parameters and control."""
        made = [self._values[value.name] for value in self._prologue.results]
        copied = [v for n, v in self._given.items() if self._value(n).by_component or runtime.settings().on_gpu]
        return sum([array.nbytes for array in [*made, *copied]])

    def _carried_rows(self, steps: int) -> int:
        """Count the rows of what is carried over in a segment of these steps."""
        return steps + 1 if self._plan.history else 1

    def segment(self, steps: int) -> Segment:
        rows = {n: (value, steps + 1) for n, value in self._program.state.items()}
        rows |= {n: (value, self._carried_rows(steps)) for n, value in self._carried.items()}
        rows |= {value.name: (value, steps) for value in self._plan.stored}
        host = self._plan.host_rows
        arrays = {n: make_rows(value, self.members * count, on_host=n in host) for n, (value, count) in rows.items()}
        segment = Segment(arrays, steps)
        layout, loops, opening = self._plan.forward
        given = {**arrays, **self._make_workspace(layout), "rows": steps + 1}
        segment.launches = self._bind(loops, given)
        segment.opening = None if opening is None else self._bind(opening, given)
        return segment

    def load(self, segment: Segment, state: Arrays) -> None:
        for name, values in state.items():
            if name in self._empty:
                continue
            put_first_row(segment.arrays[name], self._program.state[name], values, count=segment.steps + 1)

    def read(self, segment: Segment, rows: Rows, names: Collection[str] | None = None) -> Arrays:
        count = segment.steps + 1
        fields = [(n, value) for n, value in self._program.state.items() if names is None or n in names]
        found = {n: read_rows(segment.arrays[n], value, self.members, count, rows) for n, value in fields}
        return found | self._read_empty(len(range(count)[rows] if isinstance(rows, slice) else rows), names)

    def views(self, segment: Segment) -> Arrays:
        rows, state = segment.steps + 1, self._program.state.items()
        lying = {n: value for n, value in state if not value.by_component and isinstance(segment.arrays[n], np.ndarray)}
        return {n: segment.arrays[n].reshape(self.members, rows, *value.shape) for n, value in lying.items()}

    def _read_empty(self, rows: int, names: Collection[str] | None = None) -> Arrays:
        wanted = [n for n in self._empty if names is None or n in names]
        return {n: np.zeros((self.members, rows, *self._empty[n]), runtime.real_dtype()) for n in wanted}

    # --- launches

    def advance(self, segment: Segment, *, first: int, start: int, steps: int) -> None:
        assert segment.launches is not None, "made with the segment"
        if segment.opening is not None and steps:
            segment.opening.run(first, [(start, start + 1)])
        segment.launches.run(first, self._intervals(self._plan.forward[1], start, steps))
        self._finish("forward")

    def pull(self, segment: Segment, *, first: int, steps: int, adjoint: Arrays) -> None:
        dense = next(iter(adjoint.values())).shape[1] > 1
        checked = [op for op in self._program.ops if op.pattern.checks_adjoints]
        sound = bool(checked) and all([np.isfinite(values).all() for values in adjoint.values()])
        adjoint = {name: values for name, values in adjoint.items() if name not in self._empty}
        self._layout, loops = self._plan.adjoint(dense=dense)
        layout = self._layout
        given: dict[str, Any] = {**segment.arrays, **self._make_workspace(layout), "rows": segment.steps + 1}
        given |= {n: make_rows(value, self.members * segment.steps) for n, value in layout.rows.items()}
        running: dict[str, Any] = {}
        for name, values in adjoint.items():
            start = np.zeros_like(values[:, 0]) if dense else np.ascontiguousarray(values[:, -1])
            running[f"adj_{name}"] = _bring(start, f"adj_{name}", layout)
            if dense:
                given[f"dense_{name}"] = to_device(values, layout.elements[f"adj_{name}"])
        given["dense_rows"] = steps + 1
        launches = self._bind(loops, {**given, **running, **self._sum_arrays(layout)})
        launches.run(first, self._intervals(loops, 0, steps), backward=True)
        self._finish("adjoint")
        for name, values in adjoint.items():
            last = device.to_host(running[f"adj_{name}"], values[:, 0].shape)
            if not dense:
                values[:, 0] = last
                continue
            found = device.to_host(given[f"dense_{name}"], values.shape)
            if not np.shares_memory(found, values):
                values[...] = found
            values[:, 0] += last
        for op in checked if sound else ():
            op.pattern.check_adjoints(op, [values[:, 0] for values in adjoint.values()])

    def push(self, segment: Segment, *, first: int, steps: int, tangent: Arrays) -> Arrays:
        program, real = self._program, runtime.real_dtype()
        tangents = {n: np.broadcast_to(t, self._given[n].shape) for n, t in self._tangents.items() if t.size}
        known = {n: t.reshape(-1, *self._shapes[n]) for n, t in tangents.items() if n in program.params}
        moves = self._prologue.push(self._values, known, alike=self._alike)
        tangents |= moves
        moving, layout, loops = self._plan.tangent(frozenset(tangents), members=self.members)
        held = moving - tangents.keys()
        tangents |= {n: np.zeros_like(self._given[n] if n == "control" else self._values[n]) for n in held}
        given = {**segment.arrays, **self._parts(layout, "work"), "rows": segment.steps + 1}
        for name, values in tangent.items():
            if name in self._empty:
                continue
            rows = np.zeros((self.members, segment.steps + 1, *values.shape[1:]), real)
            rows[:, 0] = values
            ordered = as_elements(program.state[name], rows)
            given[f"d{name}"] = _bring(ordered, f"d{name}", layout)
        inputs = {f"d{name}": as_elements(self._value(name), values) for name, values in tangents.items()}
        intervals = self._intervals(loops, 0, steps, in_loops=not self._plan.by_step)
        self._bind(loops, given, inputs).run(first, intervals)
        self._finish("tangent")
        count, state = segment.steps + 1, program.state.items()
        found = {n: read_rows(given[f"d{n}"], value, self.members, count, slice(steps + 1)) for n, value in state}
        return found | self._read_empty(steps + 1)

    def _finish(self, name: Literal["forward", "adjoint", "tangent"]) -> None:
        """End a pass through a segment."""
        for op in self._program.ops:
            if op.pattern.on_host and op.pattern.finish is not None:
                op.pattern.finish(self.model, name, self.notes)

    def gradients(self) -> Arrays:
        sums, self._sums = self._sums, None
        real = runtime.real_dtype()
        totals = {n: np.zeros((self.members, *self._shapes[n]), real) for n in self.needs}
        if sums is not None:
            totals |= self._read_sums(sums)
            self._prologue.pull(self._values, totals, alike=self._alike)
        found = {}
        for name in self.needs:
            batched = self._given[name].ndim > len(self._shapes[name])
            found[name] = totals[name] if batched else totals[name].sum(axis=0)
        return found

    def _read_sums(self, sums: dict[str, Any]) -> Arrays:
        """Read the adjoint sums of needed parameters, of results of the prologue, and of the control: [B, *shape]."""
        found: Arrays = {}
        if "control" in self.needs:
            found["control"] = device.to_host(sums["adj_control"], (self.members, *self._shapes["control"])).copy()
        layout = self._layout
        host = {
            name: device.to_host(sums[name], (self.members, layout.parts[name], *layout.elements[name]))
            for name in layout.parts
            if name.startswith("sums")
        }
        for name, value in self._program.params.items():
            parts = [
                _add_up(host[array][:, begin:], slot.over, (self.members, *value.shape), self._program)
                for slot, (array, begin) in layout.sums.items()
                if slot.value is value
            ]
            if parts or name in self.needs:
                found[name] = sum(parts, np.zeros((self.members, *value.shape), runtime.real_dtype()))
        return found

    def _sum_arrays(self, layout: Layout) -> dict[str, Any]:
        if self._sums is None:
            self._sums = self._parts(layout, "sums")
            if "control" in self._planned:
                element, size = layout.elements["adj_control"], self.members * math.prod(self._shapes["control"])
                self._sums["adj_control"] = make_zeros(size // math.prod(element), element)
        return self._sums

    def _make_workspace(self, layout: Layout) -> dict[str, Any]:
        """Make the workspace of the forward or the adjoint pass, or take that which they share."""
        if not self._plan.shares_workspace:
            return self._parts(layout, "work")
        largest = self._plan.adjoint_layout(dense=False)
        for name, size in layout.parts.items():
            room = self.members * max(size, largest.parts.get(name, 0))
            if name.startswith("work") and (name not in self._workspace or self._workspace[name].shape[0] < room):
                self._workspace[name] = make_zeros(room, layout.elements[name])
        return {name: array for name, array in self._workspace.items() if name in layout.parts}

    def _parts(self, layout: Layout, kind: str) -> dict[str, Any]:
        """Make zeros for the arrays of the workspace, or of the adjoint sums."""
        found = {}
        for name, size in layout.parts.items():
            if name.startswith(kind):
                count, element = self.members * size, layout.elements[name]
                if name in layout.in_loops:
                    found[name] = make_zeros(count, element)
                else:
                    found[name] = np.zeros((count, *element), runtime.real_dtype())
        return found

    def _intervals(
        self, stages: Sequence[Stage], start: int, steps: int, *, in_loops: bool | None = None
    ) -> list[tuple[int, int]]:
        """Rows of each launch: in a loop over time, as many as a driver goes through in one launch.

        Else they go one by one, or, where a kernel has the loops of several steps, by that number as long as it fits.
        """
        if in_loops is None:
            in_loops = not (self._plan.key.variant.gathers or self._plan.by_step)
        end = start + steps
        if in_loops:
            most = self._steps_per_launch if runtime.settings().on_gpu else max(steps, 1)
            return [(row, min(row + most, end)) for row in range(start, end, most)]
        most = count_steps(stages, steps)
        whole = end - steps % most
        return [(row, row + most) for row in range(start, whole, most)] + [(row, row + 1) for row in range(whole, end)]

    def _bind(self, stages: Sequence[Stage], given: Mapping[str, Any], inputs: Arrays | None = None) -> Launches:
        """Bind stages to their arguments; `inputs` [elements, *element] are those besides parameters and constants."""
        finished = None
        if any([isinstance(stage, Loops) and FINISHED in stage.names for stage in stages]):
            finished = device.to_device(np.zeros(self.members, np.int32))
            given = {**given, FINISHED: finished, PROBE: 2}
        return Launches(join_launches([self._bind_stage(stage, given, inputs) for stage in stages]), finished)

    def _bind_stage(
        self, stage: Stage, given: Mapping[str, Any], inputs: Arrays | None = None
    ) -> Launch | KernelLaunch:
        chosen, inputs = runtime.settings(), inputs or {}
        tasks = min(TASKS_PER_THREAD * chosen.threads, self.members)
        if isinstance(stage, HostStage):
            known = {"members": self.members, "steps": self._steps, **given}
            return stage.bind(known, {**self._inputs, **inputs}, self.notes)
        loops = stage
        known = {
            **{name: self._on_device(name) for name in self._inputs if f"{ARRAY}{name}" in loops.names},
            **{name: to_device(array, array.shape[1:]) for name, array in inputs.items()},
            **loops.relations_on_device(),
            **loops.numbers,
            "members": self.members,
            "steps": self._steps,
            ONCE: 1,
            "tasks": self.members if chosen.on_gpu else tasks,
            "pieces": TASKS_PER_THREAD * chosen.threads,
            **given,
        }
        known |= loops.find_offsets(known)
        loops.packing.bring(known, {**self._inputs, **inputs, **loops.relations})
        arguments = tuple([known[name.removeprefix(ARRAY)] for name in loops.names])
        return StepLaunch(loops, arguments, often=self._plan.key.variant.gathers)

    @functools.cached_property
    def _inputs(self) -> Arrays:
        """Parameters, control and constants, in the order in which kernels take them."""
        given = self._values if self._program.control is None else {**self._values, "control": self._given["control"]}
        found = {name: as_elements(self._value(name), values) for name, values in given.items()}
        for value in self._program.constants():
            assert value.data is not None, "a constant array has its numbers"
            found[value.name] = as_elements(value, value.data)
        return found

    def _on_device(self, name: str) -> Any:
        """Bring an input to the device, once."""
        if name not in self._brought:
            self._brought[name] = to_device(self._inputs[name], self._inputs[name].shape[1:])
        return self._brought[name]

    def _value(self, name: str) -> Value:
        """Return the value of a parameter, of a result of the prologue, or of the control."""
        if name == "control":
            assert self._program.control is not None, "there is a control"
            return self._program.control
        return self._program.params[name]


def _bring(values: Array, name: str, layout: Layout) -> Any:
    """Bring an array to the device, if loops take it."""
    real = runtime.real_dtype()
    if name in layout.in_loops:
        return to_device(values, layout.elements[name])
    return np.ascontiguousarray(values, real).reshape(-1, *layout.elements[name])


def _add_up(members: Array, over: str, shape: tuple[int, ...], program: Program) -> Array:
    """Read the adjoint sum of a parameter [B, *shape] from the first elements of an array [B, elements, ...].

    These are the elements of the parameter, or one for each index of a loop, which are added up.
    """
    if not over:
        return members[:, : math.prod(shape[1:]) // math.prod(members.shape[2:])].reshape(shape)
    count = next(op.domain.size for op in program.ops if op.domain.name == over)
    return members[:, :count].sum(axis=1).reshape(shape)
