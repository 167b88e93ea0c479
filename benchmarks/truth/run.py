"""`python -m benchmarks.truth`: derivatives of contacts by adjoints, finite differences and closed forms.

One table lists cases in which all three agree; another, cases with different derivatives from both sides.
"""

from __future__ import annotations

from collections.abc import Iterable

from simphys.autograd import runtime

from ..measuring import markdown
from . import edges as truth_edges
from .cases import CASES, Case
from .motion import Found, Row, motion


def measure(case: Case) -> list[Row]:
    """Make a row for each derivative of a case."""
    found: list[list[Found]] = []
    for halved in (False,) if case.exact else (False, True):
        moving, T = motion(case, halved)
        values = moving.changed(case.start(moving.model.dt) if case.start else {})
        found.append([moving.found(values, case.end, by, case.closed, T) for by in case.by.values()])
    return [Row(case.what, case.law, name, *[each[place] for each in found]) for place, name in enumerate(case.by)]


def rows() -> list[Row]:
    """Make the rows of all cases, including billiards."""
    return [row for case in CASES for row in measure(case)] + truth_edges.of_billiards()


def table(found: Iterable[Row]) -> str:
    """Format the rows as a Markdown table."""
    head = ["law", "quantity", "closed form", "error", "by", "derivative", "adjoint", "finite differences", "error"]
    lines = []
    for row in found:
        one = row.whole
        numbers = [f"{number:.7g}" for number in (one.slope, one.adjoint, one.difference)]
        lines.append([row.law, row.what, f"{one.closed:.7g}", _error(row, "value_error"), row.by, *numbers])
        lines[-1].append(_error(row, "error"))
    return markdown(head, lines)


def _error(row: Row, name: str) -> str:
    whole = getattr(row.whole, name)
    if row.half is None:
        return "rounding" if whole < 1e-12 else f"{whole:.1e}"
    return f"{whole:.1e}, half a step {getattr(row.half, name):.1e}"


def main() -> None:
    """Print all tables."""
    runtime.init()
    print("All agree, to rounding or to the error of a step:\n")
    print(table(rows()) + "\n")
    print("Derivatives differ from side to side:\n")
    print(truth_edges.table({name: found() for name, found in truth_edges.edges().items()}))


if __name__ == "__main__":
    main()
