"""Operations that kernels compute where their arrays lie: on the device, without a copy, with one launch after another.

    def project(model, velocity, out):
        u, target = velocity, out["projected"].entries
        divide = KernelCall(divergence, u.numbers, b, moving=[(u, 0)])
        correct = KernelCall(correction, u.numbers, z, target.numbers, moving=[(u, 0), (target, 0)])
        return Chain(divide, *sweeps, correct)

    Project = launched(project, adjoint=adj_project, results={"projected": "velocity"})

The functions take `Entries` where those of an `operation` take NumPy arrays, and return a launch. Each is called once
for the arrays of a rollout, and its launch for every step: what takes long belongs into the function. Kernel calls that
follow each other, of one sub-step or of several, are one launch of a GPU (see autograd/kernels/calls.py). All functions
write to `out`, by the name of a result, or of an input in the adjoint, where it lacks inputs that nobody asks for. What
they write lies apart from what they read; adjoints of inputs may be written in any order. With a parameter `moment`
they get a Moment whose step is that of each launch, or None outside an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.calls import Chain, Entries, KernelCall, Launch
from simphys.simulator import Array

from .action import Access, Action, ArrayKey, Kind, Moment, PassName, Slot, no_loop
from .function import declare
from .operation import EXTRAS, Finish, Like, Operation, Run, whole_view
from .program import WHOLE, Op
from .scope import Scope, adjoint_slot

__all__ = ["Chain", "Entries", "KernelCall", "Launch", "Target", "launched"]


class Target(NamedTuple):
    """Entries that a launch writes."""

    entries: Entries
    adds: bool = False
    """True if they hold a part of the sum already, to which the launch adds."""


def launched(
    function: Run,
    *,
    adjoint: Run,
    tangent: Run,
    results: Mapping[str, Like],
    name: str,
    is_cheap: bool = False,
    work_arrays: int = 0,
    idle: Mapping[str, str] | None = None,
    finish: Finish | None = None,
) -> Any:
    """Declare a sub-step whose functions make launches, see above; for the arguments, see `operation`."""
    made = Launched(function, adjoint, tangent, results)
    made.name, made.is_cheap, made.work_arrays, made.idle = name, is_cheap, work_arrays, idle or {}
    made.finish = finish
    return declare(made)


class Launched(Operation):
    """The pattern of `launched`."""

    def arrange(self, op: Op) -> None:
        """Let arrays lie as numbers, which kernels take: other loops of a step may see vectors there."""
        for value in (*op.values(), *op.outputs):
            value.is_flat = True

    def _append_results(self, op: Op, scope: Scope, name: PassName, kind: Kind) -> None:
        targets = dict(zip(self._likes, [Slot(kind, value) for value in op.outputs], strict=True))
        written = [slot for slot in targets.values() if slot not in scope.frozen]
        slots = self._slots(op, name)
        still = {slot for slot in slots.values() if slot.kind == "tangent" and not scope.moves(slot.value)}

        def bind(entries: Mapping[Slot, Entries], moment: Moment) -> Launch:
            given = {n: _zeros(slot) if slot in still else entries[slot] for n, slot in slots.items()}
            out = {n: Target(entries[slot] if slot in written else _zeros(slot)) for n, slot in targets.items()}
            return self._start(op, name, given, out, moment)

        scope.add(_make_launch(bind, [slot for slot in slots.values() if slot not in still], written))

    def adjoint(self, op: Op, scope: Scope) -> None:
        missing = {Slot("adjoint", value) for value in op.outputs if not scope.has_adjoint(value)}
        slots, targets, adds = self._slots(op, "adjoint"), {}, {}
        for name in [n for n in self.varying if scope.wants(op.inputs[n])]:
            value = op.array(name)
            targets[name] = adjoint_slot(value)
            # Of two inputs that are one value, either may be written first: then both add.
            access: Access = "own" if list(op.values()).count(value) == 1 else "other"
            adds[name] = scope.begin(targets[name], value.view or whole_view(value), access)

        def bind(entries: Mapping[Slot, Entries], moment: Moment) -> Launch:
            given = {n: _zeros(slot) if slot in missing else entries[slot] for n, slot in slots.items()}
            out = {name: Target(entries[slot], adds[name]) for name, slot in targets.items()}
            return self._start(op, "adjoint", given, out, moment)

        reads = [slot for slot in slots.values() if slot not in missing]
        reads += [targets[name] for name in targets if adds[name]]
        scope.add(_make_launch(bind, reads, targets.values()))

    def run_alone(self, op: Op, name: PassName, given: Mapping[ArrayKey, Array]) -> list[Array]:
        arrays = {n: _bring(given[self._key(n)]) for n in self._reads[name] if n not in EXTRAS}
        values = list(op.values() if name == "adjoint" else op.outputs)
        names = self.varying if name == "adjoint" else tuple(self._likes)
        unwritten = (np.full(value.shape, np.nan) for value in values)  # so that what a launch leaves out shows
        out = {n: Target(_bring(array)) for n, array in zip(names, unwritten, strict=True)}
        self._start(op, name, arrays, out, None)()
        taken = zip(out.values(), values, strict=True)
        return [device.to_host(target.entries.numbers, (value.size,)).reshape(value.shape) for target, value in taken]

    def _start(
        self, op: Op, name: PassName, given: Mapping[str, Entries], out: Mapping[str, Target], moment: Moment | None
    ) -> Launch:
        run, model = self._runs[name], op.model
        assert run is not None and model is not None, "checked by the caller"
        more = {"moment": moment} if "moment" in self._reads[name] else {}
        launch: Launch = run(model(), **given, out=out, **more)
        return launch


def _make_launch(
    bind: Callable[[Mapping[Slot, Entries], Moment], Launch], reads: Iterable[Slot], writes: Iterable[Slot]
) -> Action:
    """Make the action of launches. What they write lies apart from what they read, as kernels read at other indices."""
    return Action(WHOLE, no_loop, dict.fromkeys(reads, "other"), dict.fromkeys(writes, "other"), launch=bind)


def _bring(array: Array) -> Entries:
    return Entries(device.to_device(np.ascontiguousarray(array, runtime.real_dtype()).reshape(-1)))


def _zeros(slot: Slot) -> Entries:
    return _bring(np.zeros(slot.value.size))
