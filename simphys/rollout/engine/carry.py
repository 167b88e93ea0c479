"""Results at the end of a step that the next step would compute again: they are carried over, such as forces of Verlet.

Where two sub-steps of a step differ only in that one takes fields of the old state, and the other those of the new
state, the result of the first is that of the second in the step before. So only the second one runs in each step. Each
launch begins with the first one.
"""

from __future__ import annotations

from typing import NamedTuple

from simphys.substep.program import Op, Program, Value


class Carried(NamedTuple):
    """A result that steps carry over."""

    early: Op
    """Sub-step that computes it from the old state."""
    late: Op
    """Sub-step that computes it from the new state, for the next step."""

    @property
    def name(self) -> str:
        return self.old.name

    @property
    def old(self) -> Value:
        return self.early.outputs[0]

    @property
    def new(self) -> Value:
        return self.late.outputs[0]


def find_carried(program: Program) -> tuple[Carried, ...]:
    """Find the costly results that a step would compute again."""
    found: dict[Op, Carried] = {}
    for number, late in enumerate(program.ops):
        for early in program.ops[:number]:
            taken = early in found or late in [other.late for other in found.values()]
            if not taken and not early.pattern.is_cheap and _is_again(program, early, late):
                found[early] = Carried(early, late)
    return tuple(found.values())


def share_layouts(program: Program) -> None:
    """Let both values of each result that is carried over lie in memory in one way, as they share it."""
    for each in find_carried(program):
        each.old.by_component = each.new.by_component = each.old.by_component or each.new.by_component


def _is_again(program: Program, early: Op, late: Op) -> bool:
    """True if the late sub-step computes from the new state what the early one computes from the old state."""
    if early.pattern is not late.pattern or len(early.outputs) != 1:
        return False
    new = {value: program.result[name] for name, value in program.state.items()}
    fixed = ("param", "constant")
    for name, value in early.inputs.items():
        other = late.inputs[name]
        if not isinstance(value, Value):
            if value != other:
                return False
        elif new.get(value, value) is not other or (value not in new and value.role not in fixed):
            return False
    if not any([value in new for value in early.values()]):
        return False
    later = program.ops[program.ops.index(late) :]
    results = program.result.values()
    return not any([early.outputs[0] in op.values() for op in later]) and early.outputs[0] not in results
