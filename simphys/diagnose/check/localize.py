"""Search for the first disagreement of nested and fused: each step by itself, from the same state and adjoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from simphys import rollout
from simphys.autograd import Tensor, grad
from simphys.rollout import Trajectory
from simphys.simulator import Array, Arrays

from .case import Case, Run, gradients
from .substeps import Step

LOCAL = 1e-10
"""Tolerance of one step between nested and fused in f64: rounding, and some cancellation."""


@dataclass(frozen=True)
class Difference:
    """Difference of one step in its result, in an adjoint, or in its contribution to a gradient."""

    kind: str
    """Kind of the difference: "values", "adjoint" or "gradient"."""
    name: str
    error: float
    nested: Array
    fused: Array


@dataclass(frozen=True)
class Localization:
    """Result of a comparison step by step."""

    errors: dict[str, float]
    """Largest relative difference in one step, by name of state field, parameter or control."""
    finding: str
    """Place and nature of the first disagreement, in a sentence or two."""

    @property
    def agree(self) -> bool:
        """True if nested and fused agree in each step; any difference at the end is then amplified rounding."""
        return all(error <= LOCAL for error in self.errors.values())


def localize(case: Case, given: Run) -> Localization:
    """Compare the steps one by one: results forward in time, then adjoints in reverse, then gradients of parameters.

    `given` is the fused gradient to explain.
    """
    fused = Along(case, given)
    worst: dict[str, float] = dict.fromkeys(case.leaves(), 0.0)
    first: dict[str, tuple[int, Difference]] = {}
    for t in reversed(range(case.steps)):
        for found in fused.differences(t):
            worst[found.name] = max(worst.get(found.name, 0.0), found.error)
            if found.error > LOCAL and (found.kind == "values" or found.kind not in first):
                known = first.get(found.kind)
                if known is None or known[0] != t or known[1].error < found.error:
                    first[found.kind] = t, found
    for name, error in fused.totals():
        worst[name] = max(worst.get(name, 0.0), error)
    for kind in ("values", "adjoint", "gradient"):
        if kind in first:
            return Localization(worst, fused.describe(*first[kind]))
    wrong = [name for name, error in worst.items() if error > LOCAL]
    if wrong:
        what = "loss" if wrong[0] == "loss" else f"gradient of {wrong[0]}"
        finding = f"Each step agrees, but the fused {what} does not follow from the steps."
    else:
        finding = (
            f"Each of the {case.steps} steps agrees, to {max(worst.values()):.1e}: the difference at the end is "
            "rounding, amplified by the motion."
        )
    return Localization(worst, finding)


class Along:
    """Fused rollout with its states and adjoints at all steps, to compare each step by itself with."""

    def __init__(self, case: Case, given: Run) -> None:
        self.case, self.given = case, given
        self.states = compute_states(case)
        trajectory = case.trajectory(keep_adjoint=True)
        self.loss = _loss_of(case, trajectory, self.states)
        gradients(case.loss(trajectory), case.leaves())  # fills the adjoint along time
        self.adjoint: Arrays = {name: getattr(trajectory.adjoint, name) for name in self.states}
        self.direct = _direct_derivatives(case, trajectory)
        self.shares = {name: np.zeros_like(g) for name, g in given.gradients.items() if name not in self.states}
        self.sizes = {name: 0.0 for name in self.shares}

    def differences(self, t: int) -> Iterator[Difference]:
        """Compare nested and fused in step t, from state t to state t + 1."""
        step, seed = self.step(t)
        for name, tensor in step.following.items():
            scale = _size(self.states[name])
            yield _difference("values", name, tensor.data, self.states[name][t + 1], scale)
        nested, fused = step.pull(seed), self._one(step, seed)
        for name, values in self.adjoint.items():
            if name in nested:
                scale = max(_size(values[t]), _size(values[t + 1]), 1e-9 * _size(values))
                found = _difference("adjoint", name, nested[name] + self.direct[name][t], values[t], scale)
                yield found
        for name, share in self.shares.items():
            if name == "control":
                share[t] = nested[name]
                continue
            share += nested[name]
            self.sizes[name] = max(self.sizes[name], _size(nested[name]), _size(share))
            scale = max(_size(fused[name]), 1e-3 * self.sizes[name])
            yield _difference("gradient", name, nested[name], fused[name], scale)

    def totals(self) -> Iterator[tuple[str, float]]:
        """Compare the given loss and gradients with those that follow from the steps.

        These are the loss of the states, the sums of the steps' contributions, and the adjoints of the first state.
        """
        yield "loss", _difference("", "loss", self.loss, self.given.loss, abs(float(self.loss))).error
        for name, gradient in self.given.gradients.items():
            if name in self.adjoint:
                steps, scale = self.adjoint[name][0], _size(self.adjoint[name][0])
            else:
                steps, scale = self.shares[name], max(self.sizes[name], _size(self.shares[name]))
            yield name, _difference("", name, steps, gradient, scale).error

    def step(self, t: int) -> tuple[Step, Arrays]:
        """Make the nested step from state t, and the adjoint of the state after it."""
        step = Step(self.case, {name: values[t] for name, values in self.states.items()}, t)
        return step, {name: np.ascontiguousarray(values[t + 1]) for name, values in self.adjoint.items()}

    def describe(self, t: int, found: Difference) -> str:
        """Describe a difference, and the sub-step that it comes from."""
        step, seed = self.step(t)
        gap = found.nested - found.fused
        element = np.unravel_index(int(np.argmax(abs(gap))), gap.shape)
        where = found.name + (f"[{', '.join(str(int(i)) for i in element)}]" if element else "")
        numbers = f"{where} is {found.nested[element]:.12g} nested and {found.fused[element]:.12g} fused"
        if found.kind == "values":
            like = step.match_values(found.name, gap)
            return f"The first disagreement is in the result of step {t}: {numbers}.{_after(like)}"
        what = "the adjoint before" if found.kind == "adjoint" else "the contribution to the gradient of"
        place = f"In reverse, the first disagreement is in {what} step {t}: {numbers}."
        refuted = step.find_refuted()
        if refuted is not None:
            return f"{place} The error is in the nested sub-step {refuted}."
        like = step.match_adjoint(found.name, gap, seed)
        return f"{place} The nested sub-steps are right there, so the error is in the fused loops.{_after(like)}"

    def _one(self, step: Step, seed: Arrays) -> Arrays:
        """Compute the adjoints of one fused step."""
        control = step.case.control
        final = rollout.rollout(
            self.case.model,
            step.case.params,
            step.case.state,
            steps=1,
            control=None if control is None else control.reshape(1, *control.shape),
            keep="final",
        ).final
        outputs = [getattr(final, name) for name in seed]
        found = grad(outputs, list(step.leaves.values()), list(seed.values()), allow_unused=True)
        return {
            n: np.zeros(x.shape) if g is None else g.data for (n, x), g in zip(step.leaves.items(), found, strict=True)
        }


def compute_states(case: Case) -> Arrays:
    """Compute the states at all steps, [steps + 1, *shape]."""
    constant = case.with_values({name: leaf.detach() for name, leaf in case.leaves().items()})
    return constant.trajectory(keep="all").states.arrays()


def _loss_of(case: Case, like: Trajectory, states: Arrays) -> Array:
    """Compute the loss of a trajectory with these states, at the same steps as in `like`."""
    kept = {name: Tensor(values[like.steps]) for name, values in states.items()}
    final = {name: Tensor(values[-1].copy()) for name, values in states.items()}
    return case.loss(replace(like, states=like.states.replace(**kept), final=like.final.replace(**final))).data


def _direct_derivatives(case: Case, trajectory: Trajectory) -> Arrays:
    """Compute the direct derivatives of the loss with respect to the states at all steps, not by way of later ones."""
    kept = {name: getattr(trajectory.states, name).detach().requires_grad_() for name in trajectory.final.names()}
    final = {name: getattr(trajectory.final, name).detach().requires_grad_() for name in kept}
    copy = replace(trajectory, states=trajectory.states.replace(**kept), final=trajectory.final.replace(**final))
    found = gradients(case.loss(copy), {**{f"kept {n}": x for n, x in kept.items()}, **final})
    direct: Arrays = {}
    for name, tensor in kept.items():
        direct[name] = np.zeros((case.steps + 1, *tensor.shape[1:]), tensor.dtype)
        direct[name][trajectory.steps] = found[f"kept {name}"]
        direct[name][-1] += found[name]
    return direct


def _difference(kind: str, name: str, nested: Array, fused: Array, scale: float) -> Difference:
    gap = _size(np.asarray(nested) - fused)
    error = gap / scale if scale > 0 else (np.inf if gap > 0 else 0.0)
    return Difference(kind, name, error if np.isfinite(gap) else np.inf, np.asarray(nested), np.asarray(fused))


def _size(values: Array) -> float:
    """Largest magnitude of the values."""
    return float(np.max(np.abs(values), initial=0.0))


def _after(like: str | None) -> str:
    return "" if like is None else f" {like}"
