"""Choice of the form in which an engine goes through its loops, by the size of the step, the batch and the settings."""

from __future__ import annotations

from typing import NamedTuple

from simphys.autograd import runtime

from . import forms
from .memory import Variant
from .plan import StepProgram

PIECES = 4
"""Number of pieces of particles if results must not depend on the number of threads."""


class Choice(NamedTuple):
    """The form of an engine's loops."""

    variant: Variant
    parallel: bool
    """True if loops are compiled for several threads."""


def choose(
    step_program: StepProgram, *, members: int, own: frozenset[str], alike: bool, form: forms.Form | None = None
) -> Choice:
    """Choose the form of the loops over `members`, of which each has its `own` values of some parameters.

    With `alike`, results do not depend on the number of threads. A `form` is one of those that `find_forms` finds.
    """
    if form is None:
        gathers, lanes = _gathers(step_program, members, alike=alike), 0
        if gathers:
            lanes = forms.choose_lanes(step_program.program, work_us=step_program.work_us, members=members)
    else:
        gathers, lanes = form != "time", forms.count_lanes(step_program.program) if form == "blocks" else 0
    batched = (
        members > 1 or bool(own) or step_program.has_pieces
    )  # one text for any batch: results are equal to the bit
    pieces = _count_pieces(step_program, alike=alike)
    variant = Variant(batched=batched, own=own, gathers=gathers, alike=alike, pieces=pieces, lanes=lanes)
    return Choice(variant, _is_parallel(step_program, members, alike=alike, gathers=gathers))


def find_forms(step_program: StepProgram) -> list[forms.Form]:
    """Find the forms that the loops of a step can have on the arch in force, whatever they cost."""
    if step_program.program.has_operations or (step_program.is_long and not runtime.settings().on_gpu):
        return ["launches"]
    if step_program.is_serial:
        return ["time"]
    found: list[forms.Form] = ["time", "launches"]
    return [*found, "blocks"] if runtime.settings().arch in forms.BLOCK_ARCHS else found


def _gathers(step_program: StepProgram, members: int, *, alike: bool) -> bool:
    """Choose between a loop over time in one launch, and a launch each step whose loops run in parallel.

    The two round differently. Either gives the same result on any number of threads. So all that `alike` requires is a
    choice that depends on the size of the system alone.
    """
    chosen = runtime.settings()
    if step_program.program.has_operations:
        return True
    if step_program.is_serial:
        return False
    if chosen.on_gpu:
        return sum([op.domain.size for op in step_program.program.ops]) > forms.GPU_SERIAL
    if step_program.is_long:
        return True
    if alike:
        return step_program.work_us > runtime.PARALLEL_WORK_US
    return runtime.parallel(step_program.work_us) and not members >= chosen.threads > 1


def _count_pieces(step_program: StepProgram, *, alike: bool) -> int:
    """Choose the number of pieces that particles are divided into."""
    if not step_program.has_pieces:
        return 1
    if alike:
        return PIECES if step_program.work_us > runtime.PARALLEL_WORK_US else 1
    return runtime.settings().threads if runtime.parallel(step_program.work_us) else 1


def _is_parallel(step_program: StepProgram, members: int, *, alike: bool, gathers: bool) -> bool:
    if alike:  # whatever the number of threads
        large = step_program.work_us * members > runtime.PARALLEL_WORK_US
        return large if step_program.has_pieces else gathers or members > 1
    if gathers:
        return runtime.parallel(step_program.work_us * members)
    return members > 1 and (runtime.settings().threads > 1 or runtime.settings().on_gpu)
