"""A step of few elements is written out, with its state in local variables; the results are those of loops."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.fuzz.steps.bodies import draw
from benchmarks.fuzz.steps.checks import compare, evaluate
from simphys.rollout.engine import registers

SEEDS = (0, 3, 5, 8, 11)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Texts of the kernels of engines that are made from now on."""
    made: list[list[str]] = []
    unroll = registers.unroll

    def noted(*arguments: Any, **options: Any) -> registers.Unrolled | None:
        found = unroll(*arguments, **options)
        made.append([] if found is None else [*found.before, *found.step])
        return found

    monkeypatch.setattr("simphys.rollout.engine.kernels.unroll", noted)
    return made


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_written_out_is_the_same_as_in_loops(
    seed: int, kernels: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registers, "FEW", 0)
    in_loops = evaluate(draw(seed))
    assert kernels and not any(kernels)
    kernels.clear()
    monkeypatch.setattr(registers, "FEW", 10_000)
    monkeypatch.setattr(registers, "LONGEST", 10_000)
    assert not compare("written out", evaluate(draw(seed)), in_loops)  # a model has its own program
    assert kernels and all(kernels)
    assert not [line for lines in kernels for line in lines if line.lstrip().startswith(("for ", "if "))]


def test_a_long_step_stays_in_loops(kernels: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registers, "LONGEST", 5)
    evaluate(draw(0))
    assert kernels and not any(kernels)
