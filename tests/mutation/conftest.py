"""Parametrization of mutation tests: a sample of the mutants of each sweep, or all with --mutants=all."""

from __future__ import annotations

import pytest

from ..helpers import checkout
from .sweep import sample

__all__ = ["checkout", "pytest_generate_tests"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize `sweep` over SWEEPS of the module; `sweep` and `mutant` over all mutants, or EACH of a rule."""
    if "sweep" not in metafunc.fixturenames:
        return
    sweeps = metafunc.module.SWEEPS
    if "mutant" not in metafunc.fixturenames:
        metafunc.parametrize("sweep", sweeps, ids=lambda sweep: sweep.name)
        return
    cases = []
    for sweep in sweeps:
        mutants = sweep.mutants()
        if metafunc.config.getoption("--mutants") == "sample":
            mutants = sample(mutants, metafunc.module.EACH)
        cases += [pytest.param(sweep, m, id=f"{m.rule} line {m.line}: {m.change}"[:120]) for m in mutants]
    metafunc.parametrize(("sweep", "mutant"), cases)
