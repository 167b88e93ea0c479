"""Tests of the sweeps of a module: import them all, and name its sweeps SWEEPS."""

from __future__ import annotations

import pytest

from simphys.autograd.proof.mutation import Mutant

from .sweep import Sweep, stale

__all__ = [
    "test_a_changed_rule_is_noticed",
    "test_the_rules_as_they_are_pass",
    "test_what_is_listed_as_equivalent_exists",
]


def test_what_is_listed_as_equivalent_exists(request: pytest.FixtureRequest) -> None:
    assert not stale(request.module.SWEEPS)


def test_the_rules_as_they_are_pass(sweep: Sweep) -> None:
    sweep.passes_the_original()


def test_a_changed_rule_is_noticed(sweep: Sweep, mutant: Mutant) -> None:
    assert sweep.notices(mutant) != sweep.is_equivalent(mutant)
