"""Every term of the rules of the other Functions is needed; and no rule is left out of the sweeps."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops, tensor
from simphys.autograd.bridges import pytorch as torch_interop
from simphys.autograd.compose import replay
from simphys.autograd.proof.gradcheck import gradcheck, gradgradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.experiment import density, losses, lowpass, memory_noise, sampling, sensors, several, shown, smoothing
from simphys.optimize.robust import RobustLoss

from . import (
    test_billiards,
    test_charges,
    test_elastic,
    test_heat,
    test_mass_spring,
    test_molecular,
    test_mpm,
    test_mpm_boundary,
    test_network,
    test_ops,
    test_patterns,
    test_pendulum,
    test_rigid_contact,
    test_rigid_motion,
    test_rigid_solver,
    test_rollout,
    test_shallow,
    test_smoke_advect,
    test_smoke_forces,
    test_smoke_project,
    test_sph,
    test_wave,
    test_wave_between_cells,
)
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 6
"""Number of mutants per rule in a sample."""


COMMUTES = {"DelayedSample.backward: ctx.slope[[]:, place] @ adj_place -> *": "the product of two vectors commutes"}


def leaf(*shape: int, seed: int = 0) -> Tensor:
    return tensor(np.random.default_rng(seed).uniform(0.3, 1.7, shape), requires_grad=True)


def samples(module: Any) -> None:
    """Check several samples in one interval, two channels of one field, and a field without a channel."""
    components = [(0, (1, 0)), (1, (2, 1)), (0, (0, 1))]
    plan = module.plan(np.array([0.1, 0.2, 0.3, 2.7, 4.0]), components, dt=0.5, steps=8)
    fields = [leaf(9, 3, 2, seed=seed) for seed in range(3)]
    gradcheck(lambda *x: module.Sample.apply(plan, *x), fields, mode="projected", repeats=1)


def whole_fields(module: Any) -> None:
    """Check samples of a batch at steps, and several between two steps."""
    for times in ([0.5, 1.0, 4.0], [0.1, 0.2, 0.3, 1.5, 2.7]):
        plan = module.field_plan(np.array(times), 1, dt=0.5, steps=8)
        gradcheck(lambda x, plan=plan: module.SampleField.apply(plan, x), (leaf(2, 9, 3),), mode="projected", repeats=1)


def low_frequencies(module: Any) -> None:
    """Check a filter along the second of three axes."""
    kernel = module.gaussian(4.0, 0.01, 30)
    gradcheck(lambda x: module.Lowpass.apply(x, 1, kernel), (leaf(2, 30, 2),), mode="projected", repeats=1)


def smooth_changes(module: Any) -> None:
    """Check coefficients of a part of a field."""
    made = module.Smoothing((5, 4), np.arange(3, 17), 0.8, leaf(14, seed=1).numpy())
    gradcheck(lambda x: module.Smooth.apply(made, x), (leaf(14),), mode="projected", repeats=1)


def robust_residuals(module: Any) -> None:
    """Check residuals on both sides of the scale of a loss."""
    residuals = tensor(np.array([-30.0, -2.0, -0.4, 1.2, 5.0]), requires_grad=True)
    loss = RobustLoss("cauchy", 1.7)
    gradcheck(lambda r: module.Robust.apply(loss, r), (residuals,), mode="projected", repeats=1)


def whitened_noise(module: Any) -> None:
    """Check a channel with a memory and missing samples beside one without a memory."""
    weights = np.ones((8, 2))
    weights[[3, 5], 0] = 0
    memories = module.make_memories(np.array([0.0, 0.1, 0.3, 0.4, 0.8, 0.9, 1.3, 1.4]), weights, [0.3, None])
    gradcheck(lambda r: module.Whiten.apply(memories, r), (leaf(8, 2),), mode="projected", repeats=1)


def delayed_samples(module: Any) -> None:
    """Check series of two fields, two of one channel, at times that two delays move."""
    components, channels = ((0, (1, 0)), (1, (2,)), (0, (0, 1))), np.array([0, 0, 1])
    plan = module.DelayedPlan(np.array([0.0, 0.11, 0.52, 0.79]), 0.1, components, channels)
    delay = tensor(np.array([0.033, -0.02]), requires_grad=True)
    inputs = delay, leaf(9, 2, 2), leaf(9, 3, seed=1)
    gradcheck(lambda *x: module.DelayedSample.apply(plan, *x), inputs, mode="projected", repeats=1)


def frames(module: Any) -> None:
    """Check the velocity of a frame along steps."""
    gradcheck(lambda u: module.Accumulate.apply(u, 0.3), (leaf(6, 2),), mode="projected", repeats=1)


def members(module: Any) -> None:
    """Check the parts of an array."""
    gradcheck(lambda x: module.Unbind.apply(x), (leaf(3, 2),), mode="projected", repeats=1)


def angles(module: Any) -> None:
    """Check angles in several quadrants."""
    x, y = (tensor(np.array(each), requires_grad=True) for each in ([0.4, -1.2, 0.7], [1.1, 0.5, -0.3]))
    gradcheck(module.Angle.apply, (x, y), mode="projected", repeats=1)


def shapes(module: Any) -> None:
    """Check densities of bodies over the edges of a grid in the plane."""
    cells = module.Cells((4, 3), 0.4, (0.5, 0.3))
    gradcheck(lambda *x: module.Density.apply(cells, *x), (leaf(6, 2), leaf(6, seed=1)), mode="projected", repeats=1)


def nodes(module: Any) -> None:
    """Check nodes that replay or keep a function of two results, one perhaps unused; and second derivatives."""

    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return ops.sin(x) * y, x * x

    inputs = leaf(3), leaf(3, seed=1)
    for node in (module.Checkpoint, module.Keep):
        gradcheck(lambda *x, node=node: module.apply(node, step, x), inputs, mode="projected", repeats=1)
        gradgradcheck(lambda *x, node=node: module.apply(node, step, x)[0], inputs, mode="projected", repeats=1)


def torch_functions(module: Any) -> None:
    """Check a function on Tensors in torch, with second derivatives, and a torch function on Tensors."""
    import torch

    def step(x: Any, y: Any) -> Any:
        return np.sin(x) * y, x * x

    inputs = [torch.tensor(leaf(3, seed=seed).numpy(), requires_grad=True) for seed in range(2)]
    theirs = module.to_torch(step)
    assert torch.autograd.gradcheck(theirs, inputs)
    assert torch.autograd.gradgradcheck(theirs, inputs)
    plain, recorded = [torch.autograd.grad(theirs(*inputs)[0].sum(), inputs, create_graph=c) for c in (False, True)]
    assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(plain, recorded, strict=True))
    ours = module.from_torch(lambda x, y: (torch.sin(x) * y, x * x))
    gradcheck(ours, (leaf(3), leaf(3, seed=1)), mode="projected", repeats=1)
    gradcheck(lambda *x: ours(*x)[1], (leaf(3), leaf(3, seed=1)), mode="projected", repeats=1)


def torch_sweeps() -> Iterator[Sweep]:
    if importlib.util.find_spec("torch") is None:
        return
    from torch.autograd.gradcheck import GradcheckError

    rules = ("_torch_node.ToTorch.backward", "_FromTorch.backward", "_FromTorch.jvp", "_pull", "_adjoint_of.adjoint")
    yield Sweep(torch_interop, rules, torch_functions, errors=(*ERRORS, GradcheckError))


SWEEPS = [
    Sweep(sampling, ("Sample.backward", "Sample.jvp", "interpolate"), samples),
    Sweep(sampling, ("SampleField.backward", "SampleField.jvp"), whole_fields),
    Sweep(lowpass, ("Lowpass.backward", "Lowpass.jvp"), low_frequencies),
    Sweep(smoothing, ("Smooth.backward", "Smooth.jvp"), smooth_changes),
    Sweep(losses, ("Robust.backward", "Robust.jvp"), robust_residuals),
    Sweep(memory_noise, ("Whiten.backward", "Whiten.jvp", "whiten"), whitened_noise),
    Sweep(sensors, ("DelayedSample.backward", "DelayedSample.jvp"), delayed_samples, equivalent=COMMUTES),
    Sweep(shown, ("Accumulate.backward", "Accumulate.jvp", "_accumulate"), frames),
    Sweep(several, ("Unbind.backward", "Unbind.jvp"), members),
    Sweep(sensors, ("Angle.backward", "Angle.jvp"), angles),
    Sweep(density, ("Density.backward", "Density.jvp", "_product"), shapes),
    Sweep(replay, ("Checkpoint.backward", "Checkpoint.jvp", "Keep.backward", "Keep.jvp"), nodes),
    Sweep(replay, ("pull_back", "_push_forward"), nodes),
    *torch_sweeps(),
]


# --- no rule is left out

SOURCE = Path(__file__).parents[2]
NAMES = ("adj_*", "jvp_*", "adjoint", "tangent")
"""Names of element functions and kernels that are rules; a Function has backward and jvp, or `elementwise` x and y."""
ELSEWHERE = {
    "adjoint_kernel.adjoint": "only calls the stages, in reverse",
    "bridges/torch_func.py: transformable_node.*": "only run the step, its adjoint or its tangent as torch functions",
    "nn/fused.py: *": "arithmetic on indices, which must not leave the arrays; held by nested = fused",
    "solver/sweeps.py: *": "arithmetic on indices, which must not leave the arrays; held by gradcheck of Solve",
    "solver/records.py: *": "likewise",
}
"""Rules without a term to drop, by name or by file and name."""


def written_rules(scope: ast.AST, path: str = "") -> Iterator[str]:
    """List the dotted path of each hand-written rule: of classes with a forward, and of compiled functions."""
    methods = {node.name for node in ast.iter_child_nodes(scope) if isinstance(node, ast.FunctionDef)}
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef):
            decorators = {ast.unparse(decorator) for decorator in node.decorator_list}
            named = node.name in ("backward", "jvp")
            of_function = named and "forward" in methods and "staticmethod" in decorators
            compiled = decorators & {"kernel", "kernel(reduced=True)", "kernel(wide=True)", "ti.func"}
            refused = isinstance(node.body[-1], ast.Raise)  # in a base class
            if (of_function and not refused) or (compiled and any(fnmatchcase(node.name, name) for name in NAMES)):
                yield path + node.name
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield from written_rules(node, f"{path}{name}.")
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="elementwise"), keywords=kws)):
                yield from [f"{path}{name}.{keyword.arg}" for keyword in kws if isinstance(keyword.value, ast.Lambda)]


def test_every_rule_is_in_a_sweep() -> None:
    others = (
        test_billiards,
        test_charges,
        test_elastic,
        test_heat,
        test_mass_spring,
        test_molecular,
        test_mpm,
        test_mpm_boundary,
        test_network,
        test_ops,
        test_patterns,
        test_pendulum,
        test_rigid_contact,
        test_rigid_motion,
        test_rigid_solver,
        test_rollout,
        test_shallow,
        test_smoke_advect,
        test_smoke_project,
        test_sph,
        test_smoke_forces,
        test_wave,
        test_wave_between_cells,
    )
    sweeps = [*SWEEPS, *[sweep for module in others for sweep in module.SWEEPS]]
    swept: dict[Path, list[str]] = {}
    for sweep in sweeps:
        swept.setdefault(Path(str(sweep.module.__file__)).resolve(), []).extend(sweep.rules)
    torch = [path for path in swept if path.name == "pytorch.py"]
    missing = [
        f"{path.relative_to(SOURCE)}: {rule}"
        for folder in ("autograd", "simphys")
        for path in sorted((SOURCE / folder).resolve().rglob("*.py"))
        if path.name != "pytorch.py" or torch
        for rule in written_rules(ast.parse(path.read_text()))
        if not any(fnmatchcase(rule, name) for name in swept.get(path, ()))
        if not any(fnmatchcase(rule, name) or fnmatchcase(f"{path}: {rule}", f"*{name}") for name in ELSEWHERE)
    ]
    assert not missing
