"""Plans: the passes, memory layouts and kernels of engines, made once for all rollouts that differ in numbers only."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any

from simphys.autograd import runtime
from simphys.substep.pieces import find_pieces
from simphys.substep.program import Program, Value

from .carry import find_carried
from .kernels import Loops, build_kernel
from .memory import Layout, Variant, lay_out, place_rest
from .passes import (
    Pass,
    PassOptions,
    adjoint_pass,
    adjoint_reads,
    find_dependent,
    find_stored,
    forward_pass,
    opening_pass,
    tangent_pass,
)
from .prologue import Prologue
from .registers import fit_registers
from .shared_loops import build_loops
from .stages import Stage, split_calls

LONG = 32
"""Largest number of sub-steps whose loops share a kernel: the compiler's time grows with the square of its length."""


OWN_TANGENTS = 2
"""Number of tangent passes for few parameters each, before one for all is made: each compiles a kernel."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """Everything that the kernels of an engine depend on."""

    variant: Variant
    parallel: bool
    needs: frozenset[str]
    """Names of the parameters, and "control", whose adjoints are wanted."""
    zeros: frozenset[str]
    """Names of the parameters that are zero, and whose adjoint and tangent nobody wants: their terms are left out."""
    precision: str
    arch: str


@dataclass(eq=False)
class StepProgram:
    """The program of a model's step, and the plans made from it."""

    name: str
    prologue: Prologue
    program: Program
    plans: dict[Key, EnginePlan] = field(default_factory=dict)
    tangents: dict[Any, dict[Any, tuple[Layout, list[Stage]]]] = field(default_factory=dict)
    """Tangent passes, by all that they depend on, and by the parameters that move and those that are zero."""

    @functools.cached_property
    def work_us(self) -> float:
        """Serial cost [us] of a step, approximately."""
        return sum([op.pattern.cost_us(op) for op in self.program.ops])

    @functools.cached_property
    def rounds(self) -> int:
        """Rounds of loops in a step, approximately, where one thread goes through all of it."""
        return 1 + sum([op.pattern.count_rounds(op) for op in self.program.ops])

    @property
    def is_long(self) -> bool:
        """True if the step is too long for one kernel."""
        return len(self.program.ops) > LONG or any([op.pattern.is_long for op in self.program.ops])

    @property
    def is_serial(self) -> bool:
        """True if a step takes one thing after the other, so that one thread goes through each member's loops."""
        return self.program.is_complex or all([op.pattern.is_serial for op in self.program.ops])

    @property
    def has_pieces(self) -> bool:
        """True if loops over particles go by pieces: on a CPU."""
        return self.is_long and not runtime.settings().on_gpu and self._has_particles

    @functools.cached_property
    def _has_particles(self) -> bool:
        return find_pieces(self.program, 1) is not None

    @functools.cached_property
    def inputs(self) -> frozenset[str]:
        """Names of the arrays that no pass writes: parameters, constants and control, and tangents of them."""
        program = self.program
        names = {*program.params, *[value.name for value in program.constants()], "control"}
        return frozenset(names | {f"d{name}" for name in names})

    def plan(self, variant: Variant, parallel: bool, *, needs: frozenset[str], zeros: frozenset[str]) -> EnginePlan:
        """Return the plan for these choices and the settings in force."""
        chosen = runtime.settings()
        key = Key(
            variant=variant,
            parallel=parallel,
            needs=needs,
            zeros=zeros,
            precision=chosen.precision,
            arch=chosen.arch,
        )
        if key not in self.plans:
            self.plans[key] = EnginePlan(self, key)
        return self.plans[key]


class EnginePlan:
    """Passes, layouts and kernels for one key, each made when it is first used."""

    def __init__(self, step_program: StepProgram, key: Key) -> None:
        self.key, self._step_program = key, step_program
        self.zeros: list[Value] = [step_program.program.params[name] for name in key.zeros]
        self._program = program = step_program.program.without_idle(self.zeros)
        wanted = find_dependent(
            step_program.prologue.ops, [program.params[n] for n in key.needs if n in program.params]
        )
        control = [program.control] if program.control is not None and "control" in key.needs else []
        params = [value for name, value in program.params.items() if name in key.needs or value in wanted]
        self._wanted: list[Value] = [*program.state.values(), *params, *control]
        reads = adjoint_reads(program, self._wanted, self.zeros)
        later = set(reads.later)
        # Zeros may leave more to carry over than the whole program had, whose layouts were shared then.
        alike = [each for each in find_carried(program) if each.old.by_component == each.new.by_component]
        carried = [each for each in alike if not later & {each.old, each.new}]
        self.carried = () if carried and self._fits_registers else tuple(carried)
        ends = [value for each in self.carried for value in (each.old, each.new)]
        self.stored = [] if step_program.program.is_complex else find_stored(program, reads, ends)
        self.history = bool(ends) and self.stored != find_stored(program, reads)
        """True if adjoints read what is carried over, so that the engine keeps it for each step."""
        self._available = [*self.stored, *ends] if self.history else self.stored
        self._adjoint_passes: dict[bool, tuple[Pass, Layout]] = {}
        self._adjoints: dict[bool, tuple[Layout, list[Stage]]] = {}
        self.segment_bytes: dict[Any, tuple[int, int]] = {}
        """Memory of a segment without steps, and of each step, by what else it depends on."""

    @property
    def _fits_registers(self) -> bool:
        """True if the step is written out: to keep the state in registers saves more than to carry results over."""
        one_by_one = all([op.pattern.count_rounds(op) <= op.domain.size for op in self._program.ops])
        return one_by_one and fit_registers(forward_pass(self._program, self._options, (), ()).groups)

    @functools.cached_property
    def _options(self) -> PassOptions:
        """Choices of the forward and the adjoint pass."""
        variant = self.key.variant
        pieces = find_pieces(self._step_program.program, variant.pieces) if self._step_program.has_pieces else None
        return PassOptions(gathers=variant.gathers, zeros=self.zeros, alike=variant.alike, pieces=pieces)

    @property
    def in_chunks(self) -> bool:
        """True if the loops of a step are several kernels."""
        return self._step_program.is_long and not runtime.settings().on_gpu

    @property
    def by_step(self) -> bool:
        """True if each step takes several launches, in every pass."""
        return self.in_chunks or self._program.has_operations

    @functools.cached_property
    def host_rows(self) -> set[str]:
        """Names of the arrays with a row for each step that stay on the host, as operations alone take them."""
        names = {*self._program.state, *[value.name for value in self.stored], *[each.name for each in self.carried]}
        return names - self._forward_pass[1].in_loops - self._adjoint_pass(dense=False)[1].in_loops

    @functools.cached_property
    def _forward_pass(self) -> tuple[Pass, Layout]:
        run = forward_pass(self._program, self._options, self.stored, self.carried, history=self.history)
        return run, self._lay_out(run)

    @functools.cached_property
    def forward(self) -> tuple[Layout, list[Stage], list[Stage] | None]:
        """The forward pass, and the loops that a launch begins with, if any."""
        name, (run, layout) = self._step_program.name, self._forward_pass
        # A force that is carried over is computed by two kernels, whose arithmetic must be joined with no other.
        apart = bool(self.carried)
        loops = self._build(f"forward_{name}", run, layout, in_loops=apart)
        if not self.carried:
            return layout, loops, None
        opening = opening_pass(self.carried, self._options)
        place_rest(layout, opening, self.key.variant)
        return layout, loops, self._build(f"opening_{name}", opening, layout, in_loops=apart)

    @functools.cached_property
    def shares_workspace(self) -> bool:
        """True if forward and adjoint pass use the same workspace: neither expects zeros there."""
        if not self._step_program.program.is_complex:
            return False
        groups = [*self._forward_pass[0].all_groups, *self._adjoint_pass(dense=False)[0].all_groups]
        return not any([action.clears for group in groups for action in group.actions])

    def adjoint_layout(self, *, dense: bool) -> Layout:
        """Return the layout of the adjoint pass."""
        return self._adjoint_pass(dense=dense)[1]

    def adjoint(self, *, dense: bool) -> tuple[Layout, list[Stage]]:
        """Return the adjoint pass; with `dense` adjoints of the states along time."""
        if dense not in self._adjoints:
            run, layout = self._adjoint_pass(dense=dense)
            self._adjoints[dense] = (
                layout,
                self._build(f"adjoint_{self._step_program.name}", run, layout, backward=True),
            )
        return self._adjoints[dense]

    def tangent(self, moving: frozenset[str], *, members: int) -> tuple[frozenset[str], Layout, list[Stage]]:
        """Return the tangent pass, in a loop over time, with the names of the parameters that move in it.

        These are the named ones at first. Once there are some passes for few, one pass for all serves any others.
        """
        variant, key = replace(self.key.variant, gathers=self._program.has_operations, lanes=0), self.key
        parallel = key.parallel and (members > 1 or self._program.has_operations)
        made = self._step_program.tangents.setdefault((variant, parallel, key.precision, key.arch), {})
        chosen = moving, key.zeros
        if chosen not in made and len(made) >= (0 if self._step_program.program.is_complex else OWN_TANGENTS):
            control = () if self._program.control is None else ("control",)
            chosen = frozenset([*self._program.params, *control]), frozenset()
        if chosen not in made:
            made[chosen] = self._make_tangent(*chosen, variant, parallel=parallel)
        return chosen[0], *made[chosen]

    def _make_tangent(
        self, moving: frozenset[str], zeros: frozenset[str], variant: Variant, *, parallel: bool
    ) -> tuple[Layout, list[Stage]]:
        program = self._step_program.program.without_idle([self._step_program.program.params[name] for name in zeros])
        control = [program.control] if program.control is not None and "control" in moving else []
        params = [value for name, value in program.params.items() if name in moving]
        still = [program.params[name] for name in zeros]
        moves = [*program.state.values(), *params, *control]
        pieces = find_pieces(program, 1) if self._step_program.has_pieces else None
        options = PassOptions(gathers=variant.gathers, zeros=still, alike=variant.alike, pieces=pieces)
        run = tangent_pass(program, options, moves)
        layout = lay_out(program, run, variant, stored=(), tangents=True)
        chosen: Any = {"variant": variant, "parallel": parallel and not self.in_chunks}
        return layout, self._build(f"tangent_{self._step_program.name}", run, layout, **chosen)

    def _build(
        self,
        name: str,
        run: Pass,
        layout: Layout,
        *,
        variant: Variant | None = None,
        parallel: bool | None = None,
        backward: bool = False,
        in_loops: bool = False,
    ) -> list[Stage]:
        """Write and compile a pass: in one kernel, or that of a long step in several, for its loops."""
        variant = variant or self.key.variant
        parallel = self.key.parallel if parallel is None else parallel
        name = (
            f"stage_{self._step_program.name}" if self._program.has_operations else name
        )  # whose text may be the same

        def build(part: Pass) -> list[Loops]:
            if self.in_chunks:
                return build_loops(self._step_program.name, part, layout, variant, parallel=parallel)
            options: Any = {"inputs": self._step_program.inputs, "parallel": parallel, "in_loops": in_loops}
            return [build_kernel(name, part, layout, variant, **options, backward=backward)]

        return list(split_calls(run, layout, build))

    def _adjoint_pass(self, *, dense: bool) -> tuple[Pass, Layout]:
        if dense not in self._adjoint_passes:
            run = adjoint_pass(self._program, self._options, self._wanted, self._available, dense=dense)
            self._adjoint_passes[dense] = run, self._lay_out(run)
        return self._adjoint_passes[dense]

    def _lay_out(self, run: Pass) -> Layout:
        rows: Any = {"stored": self.stored, "carried": self.carried, "history": self.history}
        return lay_out(self._program, run, self.key.variant, **rows)
