"""One nested step, sub-step by sub-step: the nodes of its graph with their inputs and outputs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from simphys.autograd import Context, Tensor, grad, linearize, no_grad
from simphys.autograd.errors import MissingJvp
from simphys.autograd.function import Observer
from simphys.autograd.mode import switch
from simphys.autograd.proof.finite_difference import derivative
from simphys.autograd.proof.gradcheck import EPS
from simphys.simulator import Array, Arrays

from .case import Case
from .certificate import DOT
from .sub_step import NUDGES, SubStep, compute_outputs, root_mean_square, round_inputs

DIGITS = 1e-6
"""Tolerance between adjoints and finite differences that agree with each other."""
UNCERTAIN = 1e-3
"""Largest rounding of a tangent that is accepted, relative to the adjoint; a larger spread is that of a kink."""


class _NodeRecorder(Observer):
    """Collects the nodes that are recorded while it is an observer."""

    def __init__(self) -> None:
        self.found: list[SubStep] = []
        self._depth = 0  # nodes inside a sub-step are ignored

    def before_forward(self, ctx: Context, inputs: tuple[Any, ...]) -> None:
        self._depth += 1

    def after_forward(self, ctx: Context, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...]) -> None:
        self._depth -= 1
        if self._depth == 0 and any(ctx.needs_input_grad):
            self.found.append(SubStep(ctx, inputs, outputs))


@dataclass(frozen=True)
class Traced:
    """Results of a sub-step, forward and backward."""

    name: str
    outputs: tuple[Array, ...]
    adjoints: tuple[Array | None, ...]
    """Adjoints of its inputs; empty where no adjoint reaches it."""


class Step:
    """Nested step from a given state."""

    def __init__(self, case: Case, state: Arrays, t: int) -> None:
        values = dict(case.leaves())
        if "control" in values:
            values["control"] = Tensor(case.control.data[t])  # type: ignore[union-attr]
        values |= {name: Tensor(np.array(array, order="C")) for name, array in state.items()}
        self.case = case.with_values(values).with_own_leaves()
        self.leaves = self.case.leaves()
        recorder = _NodeRecorder()
        switch.observers = (*switch.observers, recorder)
        try:
            following = case.model.step(self.case.params, self.case.state, self.case.control)
        finally:
            switch.observers = tuple([o for o in switch.observers if o is not recorder])
        self.following: dict[str, Tensor] = {name: getattr(following, name) for name in state}
        self.sub_steps = recorder.found

    def pull(self, adjoint: Arrays) -> Arrays:
        """Compute the adjoints of all leaves from the adjoint of the state after the step."""
        outputs = [(y, adjoint[name]) for name, y in self.following.items() if y.requires_grad]
        ys, seeds = zip(*outputs, strict=True)
        found = grad(ys, list(self.leaves.values()), seeds, retain_graph=True, allow_unused=True)
        return {
            name: np.zeros(leaf.shape, leaf.dtype) if g is None else g.data
            for (name, leaf), g in zip(self.leaves.items(), found, strict=True)
        }

    def trace(self, adjoint: Arrays) -> list[Traced]:
        """Return what each sub-step computes, forward and from the adjoint of the state after the step."""
        pulled: dict[int, tuple[Tensor | None, ...]] = {}

        def keep(place: int) -> Any:
            def hook(results: tuple[Tensor | None, ...], _: Any) -> None:
                pulled[place] = results

            return hook

        handles = [sub_step.node.register_hook(keep(place)) for place, sub_step in enumerate(self.sub_steps)]
        self.pull(adjoint)
        for handle in handles:
            handle.remove()
        return [
            Traced(
                sub_step.name,
                tuple([y.data for y in sub_step.outputs]),
                tuple([None if g is None else g.data for g in pulled.get(place, ())]),
            )
            for place, sub_step in enumerate(self.sub_steps)
        ]

    def prove_all(self, seed: int = 0) -> Iterator[Proof]:
        """Check each input of each sub-step by itself."""
        random = np.random.default_rng(seed)
        for sub_step in self.sub_steps:
            for place, edge in enumerate(sub_step.node.edges):
                if edge and sub_step.inputs[place].size:
                    proof = prove(sub_step, place, random)
                    yield replace(proof, by=self.name_input(sub_step.inputs[place], place))

    def find_refuted(self) -> Proof | None:
        """Find the first sub-step whose adjoint disagrees with finite differences or tangents."""
        return next((proof for proof in self.prove_all() if not proof.holds), None)

    def match_adjoint(self, name: str, difference: Array, adjoint: Arrays) -> str | None:
        """Find the sub-step whose contribution to a leaf's adjoint has the direction of the difference in it."""
        whole = self.pull(adjoint)[name]
        shares = []
        for sub_step in self.sub_steps:
            for place, edge in enumerate(sub_step.node.edges):
                if edge:
                    with sub_step.node.register_hook(_drop_adjoint(place)):
                        share = whole - self.pull(adjoint)[name]
                    where = f"{sub_step.name} through {self.name_input(sub_step.inputs[place], place)}"
                    shares.append((where, share))
        return _describe_match(difference, shares)

    def match_values(self, name: str, difference: Array) -> str | None:
        """Find the sub-step whose results, scaled up or down, would change a state field in that direction."""
        shares = []
        for sub_step in self.sub_steps:
            sources = [y for y in sub_step.outputs if y.requires_grad]
            try:
                push = linearize([self.following[name]], sources)
                shares.append((sub_step.name, push(*[y.data for y in sources])[0]))
            except MissingJvp:
                continue
        return _describe_match(difference, shares)

    def name_input(self, value: Tensor, place: int) -> str:
        """Name a sub-step's input: a leaf, the result of another sub-step, or just its position."""
        for name, leaf in self.leaves.items():
            if leaf is value:
                return name
        for other in self.sub_steps:
            if any(y is value for y in other.outputs):
                return f"input {place} (from {other.name})"
        return f"input {place}"


@dataclass(frozen=True)
class Proof:
    """Comparison of a sub-step's adjoint of one input with finite differences and tangents."""

    name: str
    own: bool
    """True if its Function belongs to the simulator; False for an operation on Tensors."""
    by: str
    """Name of the input."""
    error: float
    """Difference from finite differences, relative to the adjoint's size, or to the smallest that they resolve."""
    tolerance: float
    tangent_error: float | None
    """Difference from the tangent, likewise; None for a Function without a jvp."""
    tangent_tolerance: float = DOT
    """Larger for a derivative whose terms cancel, which is then as uncertain as their rounding."""

    @property
    def holds(self) -> bool:
        """True if all differences are within tolerance."""
        return self.error <= self.tolerance and (
            self.tangent_error is None or self.tangent_error <= self.tangent_tolerance
        )

    def __str__(self) -> str:
        if self.error > self.tolerance:
            return f"{self.name}: its adjoint of {self.by} is off by {self.error:.1e} from finite differences"
        return f"{self.name}: its adjoint of {self.by} and its tangent differ by {self.tangent_error:.1e}"


def prove(sub_step: SubStep, place: int, random: np.random.Generator) -> Proof:
    """Compare the adjoint of one input with finite differences, in a random direction and for random weights.

    Outputs are weighted by the inverse of their size (`output_sizes`), so that each counts. Entries of an input that
    differ by orders of magnitude, as masses of nodes do, are each perturbed in proportion. A difference is relative to
    the derivative, or to the smallest that rounding of the outputs leaves six digits of, if that is larger, as where a
    derivative is zero. The tolerance allows for the spread of finite differences, large at a kink of the motion. A
    derivative whose terms cancel, such as that of a block at rest, differs from the tangent by their rounding: then the
    tolerance is measured, by changes of the inputs in their last digits. The difference of a wrong rule is the same for
    all of them.
    """

    outputs_of = functools.partial(compute_outputs, sub_step, sub_step.inputs, place=place)
    x = sub_step.inputs[place].detach().requires_grad_()
    outputs = outputs_of(value=x)
    smooth = [y.requires_grad for y in outputs]  # others, such as flags of active contacts, have no adjoint
    ys = list(compress(outputs, smooth))
    sizes = compress(sub_step.output_sizes, smooth)
    seeds = [random.standard_normal(y.shape) / size for y, size in zip(ys, sizes, strict=True)]
    adjoint = grad(ys, [x], seeds, retain_graph=True)[0].data
    size = root_mean_square(x.data)
    direction = random.standard_normal(x.shape) * (np.abs(x.data) if _is_of_many_sizes(x.data) else size)

    def change(h: float) -> Array:
        with no_grad():
            moved = compress(outputs_of(value=Tensor(np.asarray(x.data + h * direction))), smooth)
        parts = [np.vdot(u, m.data - y.data) for u, m, y in zip(seeds, moved, ys, strict=True)]
        return np.asarray(sum(parts))

    found = derivative(change, EPS)
    scale = max(float(np.linalg.norm(adjoint)) * size, abs(float(found.value))) or 1.0
    noise = 100 * np.finfo("f8").eps * np.sqrt(sum(y.size for y in ys)) / float(found.step)
    measurable = max(scale, noise / DIGITS)
    tolerance = max(DIGITS, 10 * float(found.spread) / measurable)
    error = abs(float(np.vdot(adjoint, direction) - found.value)) / measurable
    try:
        sub_step.node.function.require_jvp(sub_step.name)
    except MissingJvp:
        return Proof(sub_step.name, sub_step.own, "", error, tolerance, None)
    difference = functools.partial(_tangent_difference, sub_step, place=place, seeds=seeds, direction=direction)
    own = difference(sub_step.inputs)
    tangent_error, tangent_tolerance = abs(own) / scale, DOT
    if tangent_error > DOT:
        others = [difference(round_inputs(sub_step.inputs, random)) for _ in range(NUDGES)]
        rounding = float(np.ptp([own, *others])) / scale
        faintest = 10 * np.finfo("f8").eps * np.sqrt(sum(y.size for y in ys)) / scale
        tangent_tolerance = max(DOT, min(10 * rounding, UNCERTAIN), faintest)
    return Proof(sub_step.name, sub_step.own, "", error, tolerance, tangent_error, tangent_tolerance)


def _tangent_difference(
    sub_step: SubStep, inputs: Sequence[Any], *, place: int, seeds: Sequence[Array], direction: Array
) -> float:
    """Return u.(J d) - (J^T u).d, for the derivative J by one of the inputs."""
    x = inputs[place].detach().requires_grad_()
    ys = [y for y in compute_outputs(sub_step, inputs, place, x) if y.requires_grad]
    adjoint = grad(ys, [x], seeds, retain_graph=True)[0].data
    pushed = linearize(ys, [x])(direction)
    return float(sum(np.vdot(u, dy) for u, dy in zip(seeds, pushed, strict=True)) - np.vdot(adjoint, direction))


def _is_of_many_sizes(values: Array) -> bool:
    """True if a nonzero entry is smaller than a millionth of the root mean square."""
    sizes = np.abs(values[values != 0])
    return bool(sizes.size and sizes.min() < 1e-6 * root_mean_square(values))


def _drop_adjoint(place: int) -> Any:
    """Make a hook that sets to zero the adjoint of one input."""

    def hook(results: tuple[Tensor | None, ...], _: Any) -> tuple[Tensor | None, ...]:
        changed = list(results)
        if (given := changed[place]) is not None:
            changed[place] = Tensor(np.zeros(given.shape, given.dtype))
        return tuple(changed)

    return hook


def _describe_match(difference: Array, shares: list[tuple[str, Array]]) -> str | None:
    """Describe the contribution that equals the difference, or else the one most nearly parallel to it.

    Only elements that differ count. Among contributions that are equally similar, the first is chosen.
    """
    seen = abs(difference) > 1e-6 * np.max(abs(difference), initial=0.0)
    gap = difference[seen]
    length = float(np.linalg.norm(gap))
    best: float = 0.0
    like: str | None = None
    for name, share in shares:
        part = share[seen]
        if float(np.linalg.norm(gap - part)) < 1e-3 * length:
            return f"That is the contribution of {name}, which is missing in the fused loops."
        size = length * float(np.linalg.norm(part))
        likeness = abs(float(np.vdot(part, gap))) / size if size > 0 else 0.0
        if likeness > best + 1e-3:
            best, like = likeness, f"It looks like the contribution of {name}."
    return like
