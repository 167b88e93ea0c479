"""The kernels of an engine as text to read: Python, with comments that say which sub-steps each is made of."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress

from simphys.autograd import runtime
from simphys.autograd.errors import MissingJvp
from simphys.autograd.kernels.launch import Kernel
from simphys.numerics.forward_mode import list_derived
from simphys.substep.program import WHOLE, Domain
from simphys.substep.routine import Routine

from . import forms
from .generated_engine import GeneratedEngine
from .kernels import Loops
from .memory import ONCE
from .plan import EnginePlan, StepProgram
from .stages import Stage, count_steps

PASSES = {
    "opening": "before the first step of a segment: what a step takes over from the one before",
    "forward": "the new state",
    "adjoint": "from the adjoint of the new state to that of the old one, and adjoint sums",
    "tangent": "the tangent of the new state, in a loop over time where a step needs one launch",
}
DERIVED = "tangents of formulas that follow from their source"
WIDTH = 120
"""Length of comments and of the lines of a signature."""

_GLUE = "\0"
"""A blank that no line ends with."""

Passes = Mapping[str, Sequence[Stage]]


def show_kernels(engine: GeneratedEngine, form: forms.Form | None = None) -> str:
    """Write what an engine launches for a rollout whose loss reads states along time, or what it would in another form.

    A tangent pass that there is not is left out.
    """
    plan, step_program = engine.make_plan(form), engine.step_program
    passes = list_passes(engine, plan)
    blocks = [[*_describe_form(plan, step_program, passes), "#", *_describe_step(plan, step_program, passes)]]
    known: dict[Kernel, str] = {}
    for name, stages in passes.items():
        blocks.append([f"# ==== {name}: {PASSES[name]}"])
        for number, stage in enumerate(stages, 1):
            blocks.append(_show_stage(stage, f"{name} {number} of {len(stages)}", known))
    if "tangent" in passes:
        blocks += _show_derived(step_program)
    return "\n\n".join(["\n".join(block) for block in blocks]) + "\n"


def _show_derived(step_program: StepProgram) -> list[list[str]]:
    """Show the tangents of formulas that follow from their source, each with those that it calls."""
    uses = [use for op in step_program.program.ops for use in op.pattern.list_uses(op)]
    rules = [use.element.tangent for use in uses if use.element.by_hand is None]
    functions = [rule.func for rule in rules if rule]
    functions += [op.pattern.tangent_function for op in step_program.program.ops if isinstance(op.pattern, Routine)]
    found: dict[str, None] = {}
    for function in functions:
        found |= dict.fromkeys(list_derived(function))
    return [[f"# ==== {DERIVED}"], *[text.splitlines() for text in found]] if found else []


def list_passes(engine: GeneratedEngine, plan: EnginePlan) -> Passes:
    """List the passes of a plan in the order in which a rollout runs them."""
    _, forward, opening = plan.forward
    found: dict[str, Sequence[Stage]] = {} if opening is None else {"opening": opening}
    found |= {"forward": forward, "adjoint": plan.adjoint(dense=True)[1]}
    moving = engine.needs | engine.step_program.prologue.find_dependent(engine.needs)
    with suppress(MissingJvp):
        found["tangent"] = plan.tangent(moving, members=engine.members)[2]
    return found


def _describe_form(plan: EnginePlan, step_program: StepProgram, passes: Passes) -> list[str]:
    variant, chosen = plan.key.variant, runtime.settings()
    steps = max([count_steps(stages, forms.MOST_STEPS * forms.FEWEST_LAUNCHES) for stages in passes.values()])
    if variant.lanes:
        text = f"blocks: a launch has all steps, and {variant.lanes} threads share each loop of a member"
    elif not variant.gathers:
        text = "time: a launch has all steps, and one thread goes through all loops of a member"
    elif plan.by_step:
        text = "launches: several for each step"
    else:
        text = f"launches: one for {steps} steps, or for one" if steps > 1 else "launches: one for each step"
    if step_program.has_pieces:
        text += f"; particles go in pieces ({variant.pieces}), each with a grid of its own"
    lines = [f"# {step_program.name} on {chosen.arch}, {chosen.precision}, threads: {chosen.threads}"]
    lines += _comment(f"form {text}")
    out = [n for n, stages in passes.items() if any([isinstance(x, Loops) and ONCE in x.names for x in stages])]
    if out:
        lines += _comment(f"written out, element by element, with the state in registers: {', '.join(out)}")
    return lines


def _describe_step(plan: EnginePlan, step_program: StepProgram, passes: Passes) -> list[str]:
    """Describe the sub-steps, with the numbers of the launches of each pass that they are in, and what is kept."""
    rows = [["", "sub-step", "result", "formula", "pattern", "over", *passes]]
    for number, op in enumerate(step_program.program.ops, 1):
        pattern, result = op.pattern, op.outputs[0].name
        places = [_find_launches(stages, op.label) for stages in passes.values()]
        over = _describe_domain(op.domain)
        rows.append([str(number), pattern.name, result, pattern.formula, type(pattern).__name__, over, *places])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["# the sub-steps, and the launches of each pass that they are in:"]
    for row in rows:
        lines.append("# " + "  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=True)]).rstrip())
    notes = {
        "once for a rollout, as they depend on parameters alone": [op.label for op in step_program.prologue.ops],
        "stored at each step for the adjoint": [value.name for value in plan.stored],
        "carried over to the next step": [each.name for each in plan.carried],
        "left out, as they are zero and have no gradient": sorted(plan.key.zeros),
    }
    return lines + [line for note, found in notes.items() if found for line in _comment(f"{note}: {', '.join(found)}")]


def _describe_domain(domain: Domain) -> str:
    size = " x ".join(map(str, domain.grid or (domain.size,)))
    return "the whole" if domain == WHOLE else f"{domain.name} [{size}]"


def _find_launches(stages: Sequence[Stage], label: str) -> str:
    """List the numbers of the launches that have loops of a sub-step."""
    wanted = {label, f"adjoint of {label}", f"tangent of {label}"}
    found = [str(number) for number, stage in enumerate(stages, 1) if wanted & _origins(stage)]
    return " ".join(found) or "-"


def _origins(stage: Stage) -> set[str]:
    if isinstance(stage, Loops):
        return {action.origin for group in stage.groups for action in group.actions}
    return {stage.action.origin}


def _show_stage(stage: Stage, place: str, known: dict[Kernel, str]) -> list[str]:
    """Write a launch; the kernel of an earlier one, in `known`, is not repeated."""
    if not isinstance(stage, Loops):
        return [f"# -- {place}: {stage.action.origin}, an operation on whole arrays, which the host runs"]
    lines = [f"# -- {place}"]
    for group in stage.groups:
        origins = dict.fromkeys([action.origin or "zeros" for action in group.actions])
        lines += _comment(f"over {_describe_domain(group.domain)}: {', '.join(origins)}")
    if stage.kernel in known:
        return [*lines, f"# the kernel of {known[stage.kernel]}, with other arrays"]
    known[stage.kernel] = place
    if stage.several is not None:
        lines.append(f"# {stage.several.kernel.name} repeats this for {stage.several.steps} steps")
    head, *body = stage.kernel.text.rstrip().split("\n")
    whole = textwrap.wrap(head.replace(": ", f":{_GLUE}"), WIDTH, subsequent_indent=" " * 8, break_long_words=False)
    return [*lines, *[line.replace(_GLUE, " ") for line in whole], *body]


def _comment(text: str) -> list[str]:
    """Write a comment of one line, or of several."""
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False)
