"""The report of a check of gradients: each comparison, and the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["full", "projected"]
Outcome = Literal["passed", "untrusted", "failed"]
Element = tuple[int, ...] | None
"""An index; None for a random combination of all elements."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One derivative, by the adjoint and by finite differences.

    `error` and `spread` (how far the finite differences around `eps` agree) are relative to the gradient's norm.
    """

    outcome: Outcome
    input: int
    input_element: Element
    output: int
    output_element: Element
    adjoint: float
    finite_difference: float
    error: float
    spread: float
    eps: float

    @property
    def rank(self) -> tuple[int, float]:
        """Sort key: worse comparisons are larger."""
        order = {"passed": 0, "untrusted": 1, "failed": 2}
        return order[self.outcome], self.error

    def __str__(self) -> str:
        output = "output {}{}".format(self.output, _at(self.output_element, " (random weights)"))
        input_ = "input {}{}".format(self.input, _at(self.input_element, " (random direction)"))
        return (
            f"{self.outcome}: {output} by {input_}: adjoint {self.adjoint:.12g}, "
            f"finite difference {self.finite_difference:.12g}, relative error {self.error:.1e} "
            f"(finite differences agree to {self.spread:.1e} at eps {self.eps:.1e})"
        )


@dataclass(frozen=True, kw_only=True)
class GradcheckReport:
    """The result of a check: for each input that requires a gradient, its worst comparison."""

    mode: Mode
    tolerance: float
    comparisons: tuple[Comparison, ...]
    dot_product_error: float | None
    """Relative mismatch of tangents and adjoints; None if a Function of the graph has no jvp."""

    @property
    def worst(self) -> Comparison:
        """The worst of all comparisons: its error, eps and spread are those of the check."""
        return max(self.comparisons, key=lambda comparison: comparison.rank)

    @property
    def outcome(self) -> Outcome:
        """The outcome; `untrusted` if the finite differences are too inaccurate to prove or refute the adjoint."""
        if self.dot_product_error is not None and not self.dot_product_error <= self.tolerance:
            return "failed"
        return self.worst.outcome

    def __str__(self) -> str:
        lines = [f"gradcheck {self.outcome} ({self.mode}, tolerance {self.tolerance:g})"]
        lines += [str(comparison) for comparison in self.comparisons]
        if self.dot_product_error is not None:
            lines.append(f"jvp against adjoint: relative error {self.dot_product_error:.1e}")
        if self.outcome == "untrusted":
            lines.append(
                "Finite differences have no plateau here (a kink within eps, or noise): check at another point."
            )
        return "\n  ".join(lines)


class GradcheckError(AssertionError):
    """A derivative that is wrong, or could not be proved (`report.outcome` is then `untrusted`)."""

    def __init__(self, message: str, report: GradcheckReport | None = None) -> None:
        super().__init__(message)
        self.report = report


def _at(element: Element, otherwise: str) -> str:
    return otherwise if element is None else f" at {element}" if element else ""
