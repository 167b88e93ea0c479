"""Where finite differences alone disagree, a certificate names kinks and the solver's tolerance."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from simphys.diagnose.check.certificate import DIFFERENCE, TANGENT, Statement
from simphys.diagnose.check.derivatives import explain_differences

FAILED = Statement("velocity", DIFFERENCE, 1e-3, 1e-6)
KINK = Statement("AdvectSmoke", DIFFERENCE, 0.03, 0.2)
SMOOTH = Statement("Diffuse", DIFFERENCE, 1e-10, 1e-6)


def explained(*statements: Statement, tolerance: float | None = None) -> str:
    model = SimpleNamespace() if tolerance is None else SimpleNamespace(tolerance=tolerance)
    case: Any = SimpleNamespace(model=model, leaves=lambda: {"velocity": None, "smoke": None})
    return " ".join(explain_differences(case, statements))


def test_kinks_are_named_by_their_sub_steps_and_a_tolerance_by_its_value() -> None:
    text = explained(FAILED, KINK, SMOOTH)
    assert text.startswith("Only finite differences disagree")
    assert "(AdvectSmoke)" in text and "solver" not in text
    assert explained(FAILED, replace(KINK, error=0.3)) == text
    text = explained(FAILED, SMOOTH, tolerance=1e-8)
    assert "tolerance (1e-08)" in text and "kink" not in text


@pytest.mark.parametrize(
    "others",
    [
        [],
        [Statement("velocity", "nested = fused", 1e-3, 1e-9)],
        [Statement("velocity", TANGENT, 1e-3, 1e-9)],
        [Statement("Diffuse", DIFFERENCE, 1e-3, 1e-6)],
    ],
    ids=["nothing to name", "modes", "tangent", "sub-step"],
)
def test_what_a_wrong_adjoint_does_is_not_explained_away(others: list[Statement]) -> None:
    kink = [KINK] if others else []
    assert explained(FAILED, *kink, *others) == ""


def test_a_proven_gradient_needs_no_words() -> None:
    assert explained(KINK, SMOOTH, tolerance=1e-8) == ""
