"""The proof of a scene's gradient: nested against fused, adjoint against finite differences and tangents, in f64."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from . import losses
from .autograd import Tensor, grad
from .autograd.gradcheck import GradcheckError, gradcheck
from .scene import Scene
from .soundness import require_sound

ROUNDING = 1e-9
"""Nested and fused sum in other orders; over a long horizon their relative difference stays below this in f64."""
COARSEST = 1e-3
"""The worst plateau of finite differences that still counts as a proof."""
UNSEEN = 1e-12
"""Effects on the loss below this part of the largest are rounding: a system that is not stressed has no other."""


@dataclass(frozen=True)
class Line:
    """One statement of the proof."""

    what: str
    error: float
    """Relative difference."""
    tolerance: float
    note: str

    @property
    def passed(self) -> bool:
        return bool(self.error <= self.tolerance)


@dataclass(frozen=True)
class Proof:
    """What a check found."""

    lines: tuple[Line, ...]
    fused_seconds: float
    """What one gradient takes, fused."""
    nested_seconds: float
    """And nested."""

    @property
    def passed(self) -> bool:
        return all(line.passed for line in self.lines)


def check(scene: Scene, *, seed: int = 0, on_line: Callable[[Line], None] = lambda line: None) -> Proof:
    """Compare the gradient of the scene's loss, over its full horizon, with respect to every parameter and the state.

    A scene without a loss is checked with a random weighting of its final state. `on_line` hears each statement.
    Errors: InputError in f32, and for a motion that blows up.
    """
    scene = _detached(scene)  # whose tensors stay as they are
    require_sound(scene, scene.rollout(), who="check", remedy="")
    names, leaves = _leaves(scene)
    lines: list[Line] = []

    def add(what: str, error: float, tolerance: float, note: str) -> None:
        lines.append(Line(what, error, tolerance, note))
        on_line(lines[-1])

    _gradients(_loss(scene, "fused", seed), leaves)  # compiles kernels, which is not to be timed
    began = time.perf_counter()
    fused = _loss(scene, "fused", seed)
    fused_gradients = _gradients(fused, leaves)
    middle = time.perf_counter()
    nested_gradients = _gradients(_loss(scene, "nested", seed), leaves)
    seconds = (middle - began, time.perf_counter() - middle)
    sizes = [float(np.linalg.norm(leaf.data)) for leaf in leaves]
    norms = [float(np.linalg.norm(gradient)) for gradient in nested_gradients]
    whole = max(abs(float(fused)), *(size * norm for size, norm in zip(sizes, norms, strict=True)))
    for name, size, norm, one, other in zip(names, sizes, norms, fused_gradients, nested_gradients, strict=True):
        # What a parameter does to the loss is known to the rounding of the whole. Where it does hardly anything, 1e-4
        # of the whole is the yardstick: an error of more than 1e-13 of it is noticed still.
        scale = max(norm, 1e-4 * whole / size if size > 0 else 0.0) or 1.0
        add(f"{name}: nested = fused", float(np.linalg.norm(one - other)) / scale, ROUNDING, f"|gradient| {norm:.3e}")
    for name, leaf, size, norm in zip(names, leaves, sizes, norms, strict=True):
        if norm == 0 or (size > 0 and norm * size < UNSEEN * whole):
            continue  # no difference of losses shows it; nested and fused agree upon it

        def loss_of(value: Tensor, name: str = name) -> Tensor:
            return _loss(_with(scene, name, value), "fused", seed)

        for each in leaves:
            each.requires_grad = each is leaf
        try:
            report, outcome = gradcheck(loss_of, (leaf,), mode="projected", repeats=1, seed=seed), "plateau"
        except GradcheckError as error:
            if error.report is None:
                raise
            report, outcome = error.report, error.report.outcome
        finally:
            for each in leaves:
                each.requires_grad = True
        worst = report.worst
        # Finite differences prove no better than they agree with each other, and beyond a cap nothing.
        plateau = min(worst.spread, COARSEST) if outcome != "failed" else 0.0
        tolerance = max(report.tolerance, plateau)
        add(
            f"{name}: adjoint = finite difference",
            worst.error,
            tolerance,
            f"{outcome} {worst.spread:.1e} at eps {worst.eps:.0e}",
        )
        if report.dot_product_error is not None:
            add(f"{name}: tangent = adjoint", report.dot_product_error, ROUNDING, "dot-product test")
    return Proof(tuple(lines), *seconds)


def _detached(scene: Scene) -> Scene:
    params = {f.name: getattr(scene.params, f.name).detach() for f in fields(scene.params)}
    state = {f.name: getattr(scene.state, f.name).detach() for f in fields(scene.state)}
    return replace(scene, params=scene.params.replace(**params), state=scene.state.replace(**state))


def _leaves(scene: Scene) -> tuple[list[str], list[Tensor]]:
    """Names and Tensors of all parameter fields and state components, all asked for their gradients."""
    names = [f.name for part in (scene.params, scene.state) for f in fields(part)]
    leaves = [getattr(part, f.name).requires_grad_() for part in (scene.params, scene.state) for f in fields(part)]
    kept = [(name, leaf) for name, leaf in zip(names, leaves, strict=True) if leaf.size]
    return [name for name, _ in kept], [leaf for _, leaf in kept]


def _with(scene: Scene, name: str, value: Tensor) -> Scene:
    if hasattr(scene.params, name):
        return replace(scene, params=scene.params.replace(**{name: value}))
    return replace(scene, state=scene.state.replace(**{name: value}))


def _loss(scene: Scene, mode: str, seed: int) -> Tensor:
    trajectory = scene.rollout(mode=mode)  # type: ignore[arg-type]
    residuals = scene.residuals(trajectory)
    if residuals:
        return losses.total(residuals)
    random = np.random.default_rng(seed)
    final = trajectory.final
    return (final.position * random.normal(size=final.position.shape)).sum() + (
        final.velocity * random.normal(size=final.velocity.shape)
    ).sum()


def _gradients(loss: Tensor, leaves: list[Tensor]) -> list[np.ndarray]:
    return [
        np.zeros(leaf.shape) if g is None else g.data
        for leaf, g in zip(leaves, grad(loss, leaves, allow_unused=True), strict=True)
    ]
