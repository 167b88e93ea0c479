"""Plans: the passes, memory layouts and kernels of engines, made once for all rollouts that differ in numbers only."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace

from simphys.autograd import runtime
from simphys.substep.program import Program, Value

from .kernels import Loops, build_kernel
from .memory import Layout, Variant, lay_out
from .passes import Pass, adjoint_pass, adjoint_reads, find_dependent, find_stored, forward_pass, tangent_pass
from .prologue import Prologue


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
class Recorded:
    """The recorded step of a model, and the plans made from it."""

    name: str
    prologue: Prologue
    program: Program
    plans: dict[Key, EnginePlan] = field(default_factory=dict)

    def plan(self, variant: Variant, *, parallel: bool, needs: frozenset[str], zeros: frozenset[str]) -> EnginePlan:
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

    def __init__(self, recorded: Recorded, key: Key) -> None:
        self.key, self._recorded = key, recorded
        program = recorded.program
        self.zeros: list[Value] = [program.params[name] for name in key.zeros]
        wanted = find_dependent(recorded.prologue.ops, [program.params[n] for n in key.needs if n in program.params])
        control = [program.control] if program.control is not None and "control" in key.needs else []
        params = [value for name, value in program.params.items() if name in key.needs or value in wanted]
        self._wanted: list[Value] = [*program.state.values(), *params, *control]
        self.stored = find_stored(program, adjoint_reads(program, self._wanted, self.zeros))
        self._adjoint_passes: dict[bool, tuple[Pass, Layout]] = {}
        self._adjoints: dict[bool, tuple[Layout, Loops]] = {}
        self._tangents: dict[frozenset[str], tuple[Layout, Loops]] = {}

    @functools.cached_property
    def forward(self) -> tuple[Layout, Loops]:
        """The forward pass."""
        program, key = self._recorded.program, self.key
        run = forward_pass(program, self.stored, gathers=key.variant.gathers, zeros=self.zeros)
        layout = lay_out(program, run, key.variant, stored=self.stored)
        return layout, build_kernel(f"forward_{self._recorded.name}", run, layout, key.variant, parallel=key.parallel)

    def adjoint_layout(self, *, dense: bool) -> Layout:
        """Return the layout of the adjoint pass."""
        return self._adjoint_pass(dense=dense)[1]

    def adjoint(self, *, dense: bool) -> tuple[Layout, Loops]:
        """Return the adjoint pass; with `dense` adjoints of the states along time."""
        if dense not in self._adjoints:
            run, layout = self._adjoint_pass(dense=dense)
            name, key = f"adjoint_{self._recorded.name}", self.key
            loops = build_kernel(name, run, layout, key.variant, parallel=key.parallel, backward=True)
            self._adjoints[dense] = layout, loops
        return self._adjoints[dense]

    def tangent(self, moving: frozenset[str], *, parallel: bool) -> tuple[Layout, Loops]:
        """Return the tangent pass for the named parameters, in a loop over time."""
        if moving not in self._tangents:
            program, variant = self._recorded.program, replace(self.key.variant, gathers=False)
            control = [program.control] if program.control is not None and "control" in moving else []
            params = [value for name, value in program.params.items() if name in moving]
            run = tangent_pass(program, [*program.state.values(), *params, *control], zeros=self.zeros)
            layout = lay_out(program, run, variant, stored=(), tangents=True)
            loops = build_kernel(f"tangent_{self._recorded.name}", run, layout, variant, parallel=parallel)
            self._tangents[moving] = layout, loops
        return self._tangents[moving]

    def _adjoint_pass(self, *, dense: bool) -> tuple[Pass, Layout]:
        if dense not in self._adjoint_passes:
            program, key = self._recorded.program, self.key
            gathers = key.variant.gathers
            run = adjoint_pass(program, self._wanted, self.stored, gathers=gathers, zeros=self.zeros, dense=dense)
            self._adjoint_passes[dense] = run, lay_out(program, run, key.variant, stored=self.stored)
        return self._adjoint_passes[dense]
