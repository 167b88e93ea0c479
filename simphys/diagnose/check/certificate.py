"""Statements of a check, and their text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from simphys.autograd.look.html import html_table
from simphys.rollout.budget import format_size

DIFFERENCE = "adjoint = finite difference"
TANGENT = "tangent = adjoint"
DOT = 1e-9
"""Tolerance between tangents and adjoints, which are the same sums in another order."""


@dataclass(frozen=True)
class Statement:
    """Statement that two ways to compute a gradient agree for one parameter, state field or control."""

    name: str
    """Name of the parameter, state field or control; "loss" for the value itself."""
    claim: str
    error: float
    """Relative difference; 0 if no bit differs."""
    tolerance: float
    note: str = ""

    @property
    def title(self) -> str:
        return f"{self.name}: {self.claim}"

    @property
    def passed(self) -> bool:
        return bool(self.error <= self.tolerance)


@dataclass(frozen=True)
class Cost:
    """Time and memory of one gradient in one mode."""

    mode: str
    seconds: float
    bytes: int
    """Memory kept for backward; in fused modes, the plan's peak including backward."""
    steps: int
    note: str = ""


@dataclass(frozen=True, repr=False)
class Certificate:
    """Result of a check."""

    statements: tuple[Statement, ...]
    costs: tuple[Cost, ...]
    sizes: dict[str, float]
    """Norm of each gradient by name."""
    findings: tuple[str, ...] = ()
    """Sentences on the first disagreement and the sub-step that it comes from."""
    horizon: str = ""
    """Number of steps, precision and arch of the check."""
    smaller: tuple[str, ...] = field(default=())
    """Overrides that make the checked scene smaller than the one in the file."""

    @property
    def passed(self) -> bool:
        return all(statement.passed for statement in self.statements)

    def __repr__(self) -> str:
        failed = sum(not statement.passed for statement in self.statements)
        end = f"{failed} of {len(self.statements)} statements failed" if failed else "proven"
        return f"<Certificate over {self.horizon or 'the full horizon'}: {end}; print it to see all statements>"

    def _repr_html_(self) -> str:
        first, second, *rows = _statement_rows(self.statements, self.sizes)
        heads = [" ".join(pair).strip() for pair in zip(first, second, strict=True)]
        caption = repr(self)[1:].partition(";")[0]
        return html_table(caption, heads, rows, numbers=range(1, len(heads)))

    def __str__(self) -> str:
        parts = [f"Gradient, over {self.horizon or 'the full horizon'}"]
        if self.smaller:
            parts.append(f"The scene states a smaller size for its check: {', '.join(self.smaller)}.")
        parts += ["", *_statements(self.statements, self.sizes), *_notes(self.statements), *self.findings]
        parts += [*_costs(self.costs), ""]
        failed = sum(not statement.passed for statement in self.statements)
        parts.append(f"{failed} of {len(self.statements)} statements failed" if failed else "proven")
        return "\n".join(parts)


def join_certificates(found: Mapping[str, Certificate]) -> Certificate:
    """Join the certificates of several experiments, by name; names of statements begin with that of the experiment."""
    each = found.items()
    return Certificate(
        statements=tuple([replace(s, name=f"{name}: {s.name}") for name, own in each for s in own.statements]),
        costs=tuple([replace(cost, mode=f"{name}: {cost.mode}") for name, own in each for cost in own.costs]),
        sizes={f"{name}: {key}": size for name, own in each for key, size in own.sizes.items()},
        findings=tuple([f"{name}: {text}" for name, own in each for text in own.findings]),
        horizon="; ".join([f"{name}: {own.horizon}" for name, own in each]),
    )


def _statements(statements: Sequence[Statement], sizes: dict[str, float]) -> list[str]:
    """Format a table with a row for each name and a column for each statement; the last row holds the tolerances."""
    return _table(_statement_rows(statements, sizes))


def _statement_rows(statements: Sequence[Statement], sizes: dict[str, float]) -> list[list[str]]:
    columns = list(dict.fromkeys(statement.claim for statement in statements))
    cells = {(statement.name, statement.claim): _cell(statement) for statement in statements}
    heads = [column.partition(" = ") for column in columns]
    rows = [["", "", *[head[0] for head in heads]], ["", "|gradient|", *[f"= {head[2]}" for head in heads]]]
    for name in dict.fromkeys(statement.name for statement in statements):
        size = f"{sizes[name]:.3e}" if name in sizes else ""
        rows.append([name, size, *[cells.get((name, column), "") for column in columns]])
    least = [min(statement.tolerance for statement in statements if statement.claim == column) for column in columns]
    rows.append(["tolerance", "", *["bitwise" if t == 0 else f"{t:.0e}" for t in least]])
    return rows


def _cell(statement: Statement) -> str:
    error = "bitwise" if statement.error == 0 else f"{statement.error:.1e}"
    return error if statement.passed else f"{error} FAILED"


def _notes(statements: Iterable[Statement]) -> list[str]:
    """Format failed statements, and the notes of others."""
    noted = [statement for statement in statements if statement.note or not statement.passed]
    notes = [
        f"{statement.title}: {statement.error:.1e} (tolerance {statement.tolerance:.0e}) {statement.note}".rstrip()
        for statement in noted
    ]
    return [note if statement.passed else f"FAILED {note}" for note, statement in zip(notes, noted, strict=True)]


def _costs(costs: Sequence[Cost]) -> list[str]:
    rows = [["one gradient", "steps", "time", "memory", ""]]
    for cost in costs:
        rows.append([cost.mode, str(cost.steps), f"{cost.seconds * 1e3:.3g} ms", format_size(cost.bytes), cost.note])
    return ["", *_table(rows, left=(0, 4))] if costs else []


def _table(rows: list[list[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        ).rstrip()
        for row in rows
    ]
