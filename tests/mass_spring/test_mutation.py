"""The checks notice a wrong rule: every sign and every factor of each hand-written adjoint and tangent is needed.

Each mutant is a copy of the source with one change: in a rule, a sign flipped, or the first factor of a product left
out; in the fused loops, one contribution to one adjoint dropped.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, TypeGuard

import pytest

from simphys.autograd import Tensor, runtime
from simphys.autograd.gradcheck import GradcheckError, gradcheck
from simphys.mass_spring import external, fused, integrate, spring
from simphys.mass_spring.model import Params, State, Topology

from .systems import leaves, system, unpacked, weights

FLIPPED: dict[type, type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}


def spring_force(module: ModuleType, topology: Topology, params: Params, state: State) -> None:
    inputs = (state.position, state.velocity, params.stiffness, params.damping, params.rest_length)
    check(lambda *x: module.SpringForce.apply(topology, *x), inputs)


def external_force(module: ModuleType, topology: Topology, params: Params, state: State) -> None:
    ground = (params.ground_height, params.ground_stiffness, params.ground_friction)
    inputs = (state.position, state.velocity, params.mass, params.gravity, *ground)
    check(lambda *x: module.ExternalForce.apply(topology, *x), inputs)


def integration(module: ModuleType, topology: Topology, params: Params, state: State) -> None:
    force = weights(state.position.shape).requires_grad_()
    inputs = (state.position, state.velocity, force, params.mass, params.drag)
    check(lambda *x: module.Integrate.apply(topology, (0.2, 0.1, 0.3), *x), inputs)


def check(function: Any, inputs: tuple[Tensor, ...]) -> None:
    gradcheck(function, inputs, mode="projected", repeats=1, tolerance=1e-6)


RULES = [
    (spring, spring_force, ["adj_spring_force", "jvp_spring_force"]),
    (external, external_force, ["adj_external_force", "jvp_external_force"]),
    (integrate, integration, ["adj_coefficients", "jvp_coefficients", "adj_kick", "jvp_kick"]),
]


def mutants(module: ModuleType, rule: str) -> Iterator[tuple[str, str]]:
    """(what was changed, source) for each single change of the function named `rule`."""
    tree = ast.parse(text(module))
    (function,) = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == rule]
    inner = {id(node.left) for node in ast.walk(function) if is_product(node)}
    for statement in function.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in FLIPPED:
                original, before = node.op, ast.unparse(node)
                node.op = FLIPPED[type(original)]()
                yield f"{before} -> {ast.unparse(node)}", ast.unparse(tree)
                node.op = original
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                node.op, original_sign = ast.UAdd(), node.op
                yield f"-{ast.unparse(node.operand)} -> {ast.unparse(node)}", ast.unparse(tree)
                node.op = original_sign
            elif is_product(node) and id(node) not in inner:
                first = node
                while is_product(first.left):
                    first = first.left
                factor, before = first.left, ast.unparse(node)
                first.left = ast.Constant(1.0)
                yield f"{before} -> {ast.unparse(node)}", ast.unparse(tree)
                first.left = factor


def is_product(node: Any) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def load(source: str, beside: ModuleType, folder: Path) -> Any:
    """The source as a module of the same package."""
    path = folder / "mutant.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(f"{beside.__name__}_mutant", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_kernels(source: str, beside: ModuleType, folder: Path, changed: tuple[str, ...]) -> Any:
    """The source as a module in which only the `changed` kernels are compiled anew."""
    module = load(source, beside, folder)
    own, original = module._kernels, vars(beside)["_kernels"]

    def kernels(topology: Topology) -> SimpleNamespace:
        mine = {name: getattr(own(topology), name) for name in changed}
        return SimpleNamespace(**{**vars(original(topology)), **mine})

    module._kernels = kernels
    return module


def text(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text()


CASES = [
    pytest.param(module, checked, "adjoint" if rule.startswith("adj") else "tangent", source, id=f"{rule}: {change}")
    for module, checked, rules in RULES
    for rule in rules
    for change, source in mutants(module, rule)
]


@pytest.mark.parametrize(("module", "checked"), [rule[:2] for rule in RULES], ids=lambda value: value.__name__)
def test_the_rules_as_they_are_pass(module: ModuleType, checked: Callable[..., None], tmp_path: Path) -> None:
    copy = load_kernels(ast.unparse(ast.parse(text(module))), module, tmp_path, ("forward", "adjoint", "tangent"))
    checked(copy, *system(2, nodes=4, springs=4))


@pytest.mark.parametrize(("module", "checked", "kernel", "source"), CASES)
def test_a_changed_rule_is_noticed(
    module: ModuleType, checked: Callable[..., None], kernel: str, source: str, tmp_path: Path
) -> None:
    with pytest.raises(GradcheckError) as caught:
        checked(load_kernels(source, module, tmp_path, (kernel,)), *system(2, nodes=4, springs=4))
    assert caught.value.report is not None and caught.value.report.outcome == "failed"


CONTRIBUTIONS = [
    ("serial", "final", "+ e * adj_x[new + i]"),
    ("serial", "final", "= gv + gv_external", "= gv"),
    ("serial", "final", "adj_x[i] + gx", "adj_x[i]"),
    ("serial", "final", "+ ga"),
    ("serial", "final", "+ gb"),
    ("serial", "final", "+ gm"),
    ("serial", "final", "+ gg"),
    ("serial", "final", "+ gfloor"),
    ("serial", "final", "+ gk"),
    ("serial", "final", "+ gc"),
    ("serial", "final", "+ gL"),
    ("serial", "final", "- gd"),
    ("serial", "final", "+ gd"),
    ("serial", "final", "- gu"),
    ("serial", "final", "+ gu"),
    ("serial", "final", "+ f.dot(w[a_])"),
    ("serial", "final", "- f.dot(w[b_])"),
    ("serial", "along", "+ adj_x[new + i] + gx", "+ adj_x[new + i]"),
    ("serial", "along", "+ adj_x[new + i] + gx", "+ gx"),
    ("serial", "along", "+ gv + gv_external", "+ gv"),
    ("serial", "along", "+ gv + gv_external", "+ gv_external"),
    ("gather", "final", "gx += sign * held_d[s]", "gx += held_d[s]"),
    ("gather", "final", "gv += sign * held_u[s]", "gv += held_u[s]"),
    ("gather", "final", "f -= sign * held_f[s]", "f += sign * held_f[s]"),
    ("gather", "final", "+ f.dot(w[i])"),
]
"""Kernels and loss in which it acts, a contribution to an adjoint, and what takes its place (by default nothing)."""


def check_rollout(adjoint_kernel: Any, kernels: str, loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold the derivative of the final state, or of all states, against finite differences."""
    module = importlib.import_module("simphys.mass_spring.rollout")
    monkeypatch.setattr(runtime, "parallel", lambda work_us: kernels == "gather")
    monkeypatch.setattr(module, "fused", SimpleNamespace(**{**vars(fused), "adjoint_kernel": adjoint_kernel}))
    topology, params, state = system(2, nodes=4, springs=4, dt=0.1)

    def moved(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        result = module.rollout(topology, *unpacked(*inputs), steps=3)
        return (result.position, result.velocity) if loss == "along" else (result.final.position, result.final.velocity)

    check(moved, leaves(params, state))


@pytest.mark.parametrize(("kernels", "loss"), [("serial", "final"), ("serial", "along"), ("gather", "final")])
def test_the_fused_loops_as_they_are_pass(kernels: str, loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_rollout(fused.adjoint_kernel, kernels, loss, monkeypatch)


@pytest.mark.parametrize("change", CONTRIBUTIONS, ids=": ".join)
def test_a_dropped_contribution_is_noticed(
    change: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels, loss, contribution, *instead = change
    assert text(fused).count(contribution) == 1, "the source has changed: adapt CONTRIBUTIONS"
    mutant = load(text(fused).replace(contribution, instead[0] if instead else ""), fused, tmp_path)
    with pytest.raises(GradcheckError) as caught:
        check_rollout(mutant.adjoint_kernel, kernels, loss, monkeypatch)
    assert caught.value.report is not None and caught.value.report.outcome == "failed"
