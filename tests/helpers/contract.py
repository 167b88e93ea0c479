"""Small systems of a simulator for its contract (test_contract.py), and values and gradients of their rollouts."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.rollout import Trajectory, rollout

Array = np.ndarray[Any, Any]
Result = dict[str, Array]


class System(NamedTuple):
    """The inputs of a rollout."""

    model: Any
    params: Any
    state: Any
    control: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """Return state, parameters and control by name."""
        found = {name: getattr(record, name) for record in (self.state, self.params) for name in record.names()}
        return found if self.control is None else {**found, "control": self.control}

    def inputs(self) -> dict[str, Tensor]:
        """Return the tensors that are not empty."""
        return {name: x for name, x in self.tensors().items() if x.size}

    def replace(self, inputs: Mapping[str, Tensor]) -> System:
        """Replace some of the inputs."""

        def put(record: Any) -> Any:
            return record.replace(**{name: inputs[name] for name in record.names() if name in inputs})

        return System(self.model, put(self.params), put(self.state), inputs.get("control", self.control))

    def fresh(self) -> System:
        """Copy the inputs to new leaves without gradients."""
        return self.replace({name: tensor(x.data, requires_grad=x.requires_grad) for name, x in self.inputs().items()})

    def batched(self) -> dict[str, int]:
        """Return the size of the batch by the name of each input that has a batch axis."""
        shapes = {**self.model.state_shapes(), **self.model.param_shapes()}
        ndim = {name: len(shape) for name, shape in shapes.items()}
        if self.control is not None:
            ndim["control"] = 1 + len(self.model.control_shape())
        return {name: x.shape[0] for name, x in self.tensors().items() if x.ndim > ndim[name]}

    def member(self, b: int) -> System:
        """Return member b of a batch as a system of its own."""
        batched = self.batched()
        return self.replace(
            {
                name: tensor(x.data[b] if name in batched else x.data, requires_grad=x.requires_grad)
                for name, x in self.tensors().items()
            }
        )


@dataclass(frozen=True)
class Case:
    """A small system with the accuracy of its rollouts. All tolerances are fractions of the largest expected value."""

    name: str
    system: Callable[[], System]
    steps: int
    tolerance: float = 1e-12
    """Largest difference between nested and fused steps in f64; they differ by rounding only."""
    f32: float = 0.0
    """The same in f32, for systems that are compared on any device."""
    losses: tuple[str, ...] = ("all", "final")
    """Losses to compare: all terms, or those whose names begin so, such as "final" or "states.velocity"."""
    silent: Mapping[str, frozenset[str]] | None = field(default_factory=dict)
    """Results that are 0 by the name of the loss, none by default; None if they are not compared."""
    large: Callable[[pytest.MonkeyPatch], None] | None = None
    """Compares the kernels for large systems, too: makes the system count as large."""
    members: float | None = None
    """Largest difference between a batch and its members alone; None if they are not compared."""
    keep: tuple[Any, ...] = ()
    """States to keep in rollouts within a memory budget, each as the option `keep` of a rollout."""
    budget: float = 0.9
    """Fraction of the memory of a rollout that stores all states."""
    gradcheck: Mapping[str, Any] = field(default_factory=lambda: {"mode": "projected", "tolerance": 1e-6})
    """Options of gradcheck."""
    reduced: bool = False
    """True if gradcheck takes a scalar loss, as outputs apart have magnitudes too small for finite differences."""
    dot_product: float | None = 1e-12
    """Tolerance between adjoint and tangent; None if the simulator has no tangents."""
    alone: tuple[str, ...] = ()
    """Inputs to differentiate by one at a time."""
    work_us: tuple[float, ...] = (0.0,)
    """Work [us] from which a loop is shared out among threads."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the rollouts."""


@dataclass(frozen=True)
class Contract:
    """The cases of a simulator, by the property that each is a case of."""

    modes: tuple[Case, ...]
    batches: tuple[Case, ...]
    devices: tuple[Case, ...] = ()
    budgets: tuple[Case, ...] = ()
    derivatives: tuple[Case, ...] = ()
    certificates: tuple[Case, ...] = ()
    threads: tuple[Case, ...] = ()
    quick: tuple[str, ...] = ("modes", "batches", "devices", "budgets", "derivatives", "certificates")
    """Properties whose first case stays in the quick suite."""

    def cases_on_threads(self) -> list[tuple[Case, float]]:
        """Return the cases for `threads`, each with the work [us] from which threads share a loop."""
        return [(case, work) for case in self.threads for work in case.work_us]


def named(trajectory: Trajectory, loss: str) -> dict[str, Tensor]:
    """Return the terms of a loss by name: the fields of the final state, and of the states along time."""
    found: dict[str, Tensor] = {}
    for kind, record in (("final", trajectory.final), ("states", trajectory.states)):
        found |= {f"{kind}.{name}": getattr(record, name) for name in record.names()}
    return {
        name: x for name, x in found.items() if x is not None and x.size and (loss == "all" or name.startswith(loss))
    }


def evaluate(
    system: System, steps: int, loss: str = "all", *, member: tuple[int, int] | None = None, **options: Any
) -> Result:
    """Return the states along time, and the gradients of a random sum over the terms of a loss.

    With `member` (b, B), the weights are those of member b in a batch of B.
    """
    system = system.fresh()
    model, params, state, control = system
    trajectory = rollout(model, params, state, steps=steps, control=control, **options)
    total: Tensor = tensor(0.0)
    for name, x in named(trajectory, loss).items():
        shape = x.shape if member is None else (member[1], *x.shape)
        w = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape).astype(runtime.real_dtype())
        total = total + (tensor(w if member is None else w[member[0]]) * x).sum()
    total.backward()
    values = {name: x.data for name, x in named(trajectory, "all").items()}
    for name, x in system.inputs().items():
        if x.requires_grad:
            values[f"gradient by {name}"] = np.zeros(x.shape) if x.grad is None else x.grad.data
    return values


def assert_same(found: Result, expected: Result, relative: float) -> None:
    """Compare arrays within a fraction of the largest expected value of each; 0 demands equality."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        atol = relative * float(np.abs(value).max(initial=0))
        np.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=name)


def tolerance(f64: float, f32: float) -> float:
    """Choose the tolerance for the precision of this process."""
    return f64 if runtime.real_dtype() == np.float64 else f32


def save_runs(module: str, folder: str) -> None:
    """Save the results of two runs of each case for `threads` of the contract in a module, each in a file."""
    contract: Contract = importlib.import_module(module).CONTRACT
    for number, (case, work) in enumerate(contract.cases_on_threads()):
        runtime.PARALLEL_WORK_US = work
        for run in range(2):
            found: dict[str, Any] = evaluate(case.system(), case.steps, **case.options)
            np.savez(Path(folder) / f"{number} {run}.npz", **found)
