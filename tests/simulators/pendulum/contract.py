"""The small pendulums that keep the contract of a simulator."""

from __future__ import annotations

import functools
from typing import Any

from ...helpers.contract import Case, Contract, System
from . import chains, sphericals

STEPS = 12
LINKS = 3


def build(
    kind: str,
    integrator: str,
    *,
    steps: int = STEPS,
    torque: bool = True,
    torque_batch: int | None = None,
    **options: Any,
) -> System:
    """Build a chain of three links or a spherical pendulum, with motor torques or without."""
    if kind == "spherical":
        driven = sphericals.torques(steps, torque_batch) if torque else None
        return System(*sphericals.spherical(integrator, **options), driven)
    driven = chains.torques(steps, LINKS, torque_batch) if torque else None
    return System(*chains.chain(LINKS, integrator, **options), driven)


def cases(name: str = "", **options: Any) -> list[Case]:
    """Make a case for each kind, with friction or without, and integrator."""
    case = {key: options.pop(key) for key in tuple(options) if key in Case.__dataclass_fields__}
    return [
        Case(
            f"{kind}, {integrator}{name}",
            functools.partial(build, kind.split()[0], integrator, steps=case.get("steps", STEPS), **options, **more),
            **{"steps": STEPS, **case},
        )
        for kind, more in {"chain": {}, "chain with friction": {"friction": True}, "spherical": {}}.items()
        for integrator in ("rk4", "variational")
    ]


def batches() -> list[Case]:
    """Make cases that share all inputs among members, some or none, with torques for each, for all and without."""
    driven: dict[str, dict[str, Any]] = {
        "own torques": {"torque_batch": 3}, "one torque": {}, "no torque": {"torque": False}
    }  # fmt: skip
    return [
        Case(
            f"{kind}, {integrator}, {label}, {names}",
            functools.partial(build, kind, integrator, dt=0.03, batch=3, batched=batched, **torques),
            STEPS,
            members=1e-12,
        )
        for kind, own in (("chain", chains.NAMES), ("spherical", sphericals.NAMES))
        for integrator in ("rk4", "variational")
        for names, batched in {"all": own, "mass": ("rate", "mass"), "length": ("length", "gravity")}.items()
        for label, torques in driven.items()
    ]


CONTRACT = Contract(
    modes=(*cases(), *cases(", no torque", torque=False)),
    batches=tuple(batches()),
    devices=tuple(cases(batch=2, batched=("rate",), f32=1e-3)),
    budgets=tuple(cases(keep=([STEPS], [0, 3, 8], "final"))),
    derivatives=tuple(cases(steps=4, batch=2, batched=("rate", "length"))),
    certificates=tuple(cases(alone=("rate", "mass"))),
    quick=(),  # each takes seconds to compile
)
