"""The passes over a program that an engine runs for each step: forward, adjoint and tangent, as loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from simphys.substep.action import Access, Action, PassName, Slot
from simphys.substep.operation import whole_view
from simphys.substep.pieces import Pieces
from simphys.substep.program import WHOLE, ElementView, Op, Program, Value
from simphys.substep.schedule import Group, schedule
from simphys.substep.scope import Scope, clear
from simphys.substep.site import Site

from .carry import Carried


@dataclass(eq=False)
class Pass:
    """Loops of one step, with the names that occur in their text."""

    groups: list[Group]
    scope: Scope
    aliases: Mapping[Slot, Slot] = field(default_factory=dict)
    """Slots that share the memory of another."""
    dense: Mapping[str, Slot] = field(default_factory=dict)
    """Slot of the loss's derivative by the state that leaves the step, by field."""
    deferred: list[Group] = field(default_factory=list)
    """Loops that run after all steps of a segment, and go through its steps themselves."""
    pieces: Pieces | None = None
    """Particles whose loops go by pieces, and those of the grid around them by the parts of a box."""

    @property
    def all_groups(self) -> list[Group]:
        return [*self.groups, *self.deferred]


@dataclass(frozen=True, kw_only=True)
class PassOptions:
    """Choices that passes have in common."""

    gathers: bool
    """True if loops add to their own elements only, so that they can run in parallel."""
    zeros: Collection[Value]
    """Parameters that are zero, and whose adjoint and tangent nobody wants."""
    alike: bool = False
    """True if results do not depend on the number of threads."""
    pieces: Pieces | None = None
    """Particles whose loops go by pieces."""

    def open_scope(self, **more: Any) -> Scope:
        scope = Scope(gathers=self.gathers, zeros=self.zeros, alike=self.alike, **more)
        if self.pieces is not None:
            self.pieces.prepare(scope)
        return scope

    def complete(self, actions: list[Action]) -> list[Action]:
        """Add what pieces need to the actions of a pass."""
        return actions if self.pieces is None else self.pieces.complete(actions)


def find_dependent(ops: Collection[Op], sources: Collection[Value]) -> set[Value]:
    """Find the values that depend on some values, which are included."""
    found = set(sources)
    for op in ops:
        if any([op.inputs[name] in found for name in op.pattern.varying]):
            found |= set(op.outputs)
    return found


@dataclass(frozen=True)
class Reads:
    """Results of sub-steps that adjoints read."""

    values: list[Value]
    later: list[Value]
    """Those that deferred actions read, which need them of all steps."""


def find_stored(program: Program, reads: Reads, available: Collection[Value] = ()) -> list[Value]:
    """Find the values that are kept from the forward pass: those of deferred actions, and others that are not cheap."""
    makers = {value: op for op in program.ops for value in op.outputs}
    kept = {*program.result.values(), *available}
    stored: dict[Value, None] = {}

    def is_cheap(value: Value) -> bool:
        if value.role != "local" or value in kept or value in stored:
            return True
        op = makers[value]
        return op.pattern.is_cheap and all([is_cheap(other) for other in op.values()])

    later, read = set(reads.later) - kept, set(reads.values)
    for value in makers:  # in the order of the program, which a set does not have
        if value in later or (value in read and not is_cheap(value)):
            stored[value] = None
    return list(stored)


def forward_pass(
    program: Program,
    options: PassOptions,
    stored: Collection[Value],
    carried: Collection[Carried],
    *,
    history: bool = False,
) -> Pass:
    """Compute the new state, what is stored for the adjoint, and what is carried over, which `history` keeps apart."""
    scope = options.open_scope()
    scope.kept |= {Slot("value", value) for value in (*program.result.values(), *stored)}
    scope.kept |= {Slot("value", each.new) for each in carried}
    early = [each.early for each in carried]
    for op in program.ops:
        if op not in early:
            _append(op, "forward", scope)
    aliases = {} if history else {Slot("value", each.new): Slot("value", each.old) for each in carried}
    actions = [_under_aliases(action, aliases) for action in options.complete(scope.actions)]
    return Pass(schedule(actions), scope, aliases, pieces=options.pieces)


def opening_pass(carried: Collection[Carried], options: PassOptions) -> Pass:
    """Compute what the first step of a launch would take from the step before."""
    scope = Scope(gathers=options.gathers, zeros=options.zeros)
    scope.kept |= {Slot("value", each.old) for each in carried}
    for each in carried:
        _append(each.early, "forward", scope)
    return Pass(schedule(scope.actions), scope)


def adjoint_reads(program: Program, wanted: Collection[Value], zeros: Collection[Value]) -> Reads:
    """Find the results of sub-steps that the adjoints of a program read."""
    needed = find_dependent(program.ops, wanted)
    scope = Scope(gathers=False, zeros=zeros, wanted=needed, deferrable=_find_deferrable(program))
    _append_adjoints(program, scope)
    found = [
        [slot.value for slot in _value_reads(actions) if slot.value.role == "local"]
        for actions in (scope.actions, scope.deferred)
    ]
    return Reads(*found)


def adjoint_pass(
    program: Program, options: PassOptions, wanted: Collection[Value], stored: Collection[Value], *, dense: bool
) -> Pass:
    """Take the adjoint of the new state back to that of the old one, and add to the adjoint sums.

    Results of sub-steps that are read, but not stored, are computed again first.
    """
    wanted = find_dependent(program.ops, wanted)
    scope = options.open_scope(wanted=wanted, deferrable=_find_deferrable(program))
    given = {name: Slot("adjoint", _dense(value)) for name, value in program.result.items()} if dense else {}
    scope.started |= set(given.values())
    for name, slot in given.items():
        scope.add(_add_dense(Slot("adjoint", program.result[name]), slot))
    start, scope.actions = scope.actions, []
    _append_adjoints(program, scope)
    adjoints, scope.actions = scope.actions, []
    available = {*stored, *program.result.values()}
    _append_again(program, scope, _value_reads(adjoints), available)
    again = scope.actions
    apart = any([action.is_call for action in again])  # so that kernels of the forward pass serve again
    scope.actions = [*again, *start, *adjoints] if apart else [*start, *again, *adjoints]
    aliases = _alias_states(program, scope)
    actions = [_under_aliases(action, aliases) for action in options.complete(scope.actions)]
    count = len(again) if apart else 0
    groups = schedule(actions[:count]) + schedule(actions[count:])
    return Pass(groups, scope, aliases, given, schedule(scope.deferred), options.pieces)


def tangent_pass(program: Program, options: PassOptions, moving: Collection[Value]) -> Pass:
    """Compute the tangent of the new state from that of the old one."""
    moves = find_dependent(program.ops, moving)
    scope = options.open_scope(moving=moves)
    scope.kept |= {Slot("tangent", value) for value in program.result.values()}
    for op in program.ops:
        if any([op.inputs[name] in moves for name in op.pattern.varying]):
            _append(op, "tangent", scope)
    for value in program.result.values():
        if value not in moves:
            scope.add(clear(Slot("tangent", value), value.view or ElementView(WHOLE, value.shape)))
    tangents, scope.actions = scope.actions, []
    _append_again(program, scope, _value_reads(tangents), set(program.result.values()))
    scope.actions += tangents
    return Pass(schedule(options.complete(scope.actions)), scope, pieces=options.pieces)


def _find_deferrable(program: Program) -> set[Value]:
    """Find the parameters whose adjoint may be summed up after the steps of a segment: those that are taken once.

    Of two sums, the later one would begin once a segment, so that the order of terms would depend on the segments.
    """
    if program.is_complex:
        return set()
    taken = Counter([value for op in program.ops for value in op.values()])
    taken.update(program.result.values())
    return {value for value, times in taken.items() if value.role == "param" and times == 1}


def _append(op: Op, name: PassName, scope: Scope) -> None:
    """Append the actions of a sub-step, which then say so."""
    origin = op.label if name == "forward" else f"{name} of {op.label}"
    before = [(actions, len(actions)) for actions in (scope.actions, scope.deferred)]
    getattr(op.pattern, name)(op, scope)
    for actions, start in before:
        actions[start:] = [replace(action, origin=origin) for action in actions[start:]]


def _append_adjoints(program: Program, scope: Scope) -> None:
    scope.started |= {Slot("adjoint", value) for value in program.result.values()}
    scope.kept |= scope.started | {Slot("adjoint", value) for value in program.state.values()}
    for op in reversed(program.ops):
        wanted = any([scope.wants(op.inputs[name]) for name in op.pattern.varying])
        if wanted and any([scope.has_adjoint(value) for value in op.outputs]):
            _append(op, "adjoint", scope)
    for name, value in program.state.items():
        if not scope.has_adjoint(value):  # it lies as that of the new state, with which it may share memory
            scope.begin(Slot("adjoint", value), program.result[name].view or whole_view(value), "other")


def _append_again(program: Program, scope: Scope, reads: Collection[Slot], available: Collection[Value]) -> None:
    """Append the forward actions of the sub-steps whose results are read, but not available."""
    again: list[Op] = []
    needed = {slot.value for slot in reads if slot.value.role == "local"} - set(available)
    for op in reversed(program.ops):
        if needed & set(op.outputs):
            again.append(op)
            needed |= {value for value in op.values() if value.role == "local" and value not in available}
    scope.frozen |= {Slot("value", value) for value in available}
    for op in reversed(again):
        _append(op, "forward", scope)


def _value_reads(actions: Collection[Action]) -> set[Slot]:
    return {slot for action in actions for slot in action.reads if slot.kind == "value"}


def _dense(value: Value) -> Value:
    return Value(f"dense_{value.name}", value.shape, "local", value.view, is_flat=value.is_flat)


def _add_dense(running: Slot, dense: Slot) -> Action:
    """Add the loss's derivative by a state to its adjoint, and keep the sum."""
    view = running.value.elements

    def emit(site: Site) -> None:
        site.add(running, view, site.load(dense, view))
        site.store(dense, view, site.load(running, view))

    own: dict[Slot, Access] = {running: "own", dense: "own"}
    return Action(view.domain, emit, own, dict(own), origin="the loss's derivative")


def _alias_states(program: Program, scope: Scope) -> dict[Slot, Slot]:
    """Let the adjoint of the old state take the memory of the new one's, where that is read before; else copy it."""
    aliases = {}
    for name, old in program.state.items():
        before, after = Slot("adjoint", old), Slot("adjoint", program.result[name])
        first = min([n for n, action in enumerate(scope.actions) if before in action.writes])
        last = max([n for n, action in enumerate(scope.actions) if after in action.slots()], default=-1)
        same = first == last and scope.actions[first].writes[before] == "own" == scope.actions[first].reads.get(after)
        if last < first or same:
            aliases[before] = after
        else:
            scope.add(_copy(before, after))
    return aliases


def _copy(source: Slot, target: Slot) -> Action:
    view = target.value.elements

    def emit(site: Site) -> None:
        site.store(target, view, site.load(source, view))

    return Action(view.domain, emit, {source: "own"}, {target: "own"}, origin="a copy for the next step")


def _under_aliases(action: Action, aliases: Mapping[Slot, Slot]) -> Action:
    reads = {aliases.get(slot, slot): access for slot, access in action.reads.items()}
    writes = {aliases.get(slot, slot): access for slot, access in action.writes.items()}
    return replace(action, reads=reads, writes=writes)
