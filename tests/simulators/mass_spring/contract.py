"""The small mass-spring systems that keep the contract of a simulator."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from simphys.autograd import runtime, tensor
from simphys.rollout.engine import forms

from ...helpers.contract import Case, Contract, System
from .systems import NAMES, controls, system

STEPS = 30
INTEGRATORS = {"semi_implicit_euler": "symplectic", "velocity_verlet": "verlet"}


def gather(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the kernels of large systems, whose nodes gather the forces of their springs."""
    monkeypatch.setattr(runtime, "parallel", lambda work_us: True)
    monkeypatch.setattr(forms, "GPU_SERIAL", 0)


def build(dim: int, *, steps: int = STEPS, members: int = 0, batched: tuple[str, ...] = (), **options: Any) -> System:
    """Build a system; in a batch the `batched` inputs differ between members by a few per cent."""
    model, params, state = system(dim, **options)
    found = System(model, params, state, controls(model, steps) if model.actuators else None)
    random = np.random.default_rng(7)
    return found.replace(
        {
            name: tensor(x.data * random.uniform(0.95, 1.05, (members, *x.shape)), requires_grad=True)
            for name, x in found.inputs().items()
            if name in batched
        }
    )


def cases(name: str, dim: int, steps: int = STEPS, *, case: dict[str, Any] | None = None, **options: Any) -> list[Case]:
    """Make a case for each integrator."""
    return [
        Case(
            f"{name}, {label}",
            functools.partial(build, dim, integrator=integrator, steps=steps, **options),
            steps,
            **{"tolerance": 1e-13, **(case or {})},
        )
        for integrator, label in INTEGRATORS.items()
    ]


LOSSES = ("all", "final.position", "final.velocity", "states.position", "states.velocity")
MODES: dict[str, Any] = {"losses": LOSSES, "large": gather}
NO_FRICTION = {loss: frozenset({"gradient by ground_friction"}) for loss in LOSSES}
"""There is no direction along the ground on a line."""
SHORT = 12
BATCHED: dict[str, tuple[str, ...]] = {
    "starts": ("position", "velocity"),
    "controls": ("control",),
    "stiffness and start": ("stiffness", "velocity"),
    "mass and ground": ("mass", "ground_height", "gravity"),
    "everything": (*NAMES, "control"),
}
BATCH: dict[str, Any] = {"losses": ("states",), "large": gather, "members": 1e-12}
DERIVATIVE: dict[str, Any] = {"losses": ("final",)}
THREADS: dict[str, Any] = {"work_us": (5.0,)}  # systems of a thousand nodes count as large
BOTH = ("velocity", "stiffness")

CONTRACT = Contract(  # 18 springs form blocks of four, the last one incomplete; 7 are taken one by one
    modes=(
        *cases("plane", 2, nodes=8, springs=18, air=True, seed=2, case=MODES),
        *cases("line", 1, nodes=8, springs=7, seed=1, case={**MODES, "silent": NO_FRICTION}),
        *cases("space", 3, nodes=8, springs=7, seed=3, case=MODES),
        *cases("driven", 2, nodes=8, springs=18, actuators=4, seed=2, case=MODES),
        *cases("controlled", 2, SHORT, nodes=6, springs=17, actuators=3, controlled=True, case=MODES),
    ),
    batches=tuple(
        [
            case
            for name, batched in BATCHED.items()
            for case in cases(name, 2, SHORT, nodes=8, springs=18, actuators=4, members=3, batched=batched, case=BATCH)
        ]
    ),
    devices=tuple(
        [
            case
            for name, batched in BATCHED.items()
            for case in cases(
                name,
                2,
                SHORT,
                nodes=8,
                springs=18,
                actuators=4,
                members=3,
                batched=batched,
                case={**BATCH, "f32": 1e-5},
            )[:1]
        ]
    ),
    budgets=tuple(cases("plane", 2, actuators=4, case={"keep": ([STEPS], [0, 3, 8], "final")})),
    derivatives=(
        *cases("plane", 2, 200, springs=7, dt=0.005, case=DERIVATIVE),
        *cases("line", 1, 200, springs=7, dt=0.005, case=DERIVATIVE),
        *cases("space", 3, 200, springs=18, dt=0.005, case=DERIVATIVE),
        *cases("plane, all states", 2, 20),
    ),
    certificates=tuple(cases("plane", 2, 12, case={"alone": ("velocity", "stiffness")})),
    threads=(
        *[
            Case(
                name,
                functools.partial(
                    build, 2, nodes=n, springs=m, actuators=4, steps=SHORT, members=members, batched=BOTH
                ),
                SHORT,
                options={"deterministic": True},
                **THREADS,
            )
            for name, members, n, m in (("small batch, deterministic", 9, 8, 18), ("large batch", 2, 600, 1500))
        ],
    ),
)
