"""The changes that are made in a rule, and those that are not."""

from __future__ import annotations

import ast
import textwrap

import pytest

from simphys.autograd.proof.rule_changes import changes


def made(body: str, *, header: str = "def rule(ctx, adj):") -> set[str]:
    """The changes of a function with this body, as text."""
    (function,) = ast.parse(f"{header}\n{textwrap.indent(textwrap.dedent(body), '    ')}").body
    assert isinstance(function, ast.FunctionDef)
    return {f"{ast.unparse(node)} -> {text}" for node, text in changes(function)}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a + b", ["a - b", "a", "b"]),
        ("a - b", ["a + b", "b - a", "a", "-b"]),
        ("a * b", ["a", "b"]),
        ("a / b", ["b / a", "a", "1 / b"]),
        ("1 / b", ["b / 1", "1"]),
        ("a @ b", ["b @ a"]),
        ("a ** b", ["a"]),
        ("a & b", ["a", "b"]),
        ("-a", ["a"]),
        ("a < b", ["a > b", "a <= b"]),
        ("a >= b", ["a <= b", "a > b"]),
        ("a == b", ["a != b"]),
        ("a in b", ["a not in b"]),
        ("a.T", ["a"]),
        ("np.cos(a)", ["np.sin(a)", "a"]),
        ("np.exp(a)", ["a"]),
        ("np.where(c, a, b)", ["np.where(c, b, a)"]),
        ("ti.max(a, 0)", ["ti.min(a, 0)"]),
        ("a.swapaxes(-1, -2)", ["a"]),
        ("np.moveaxis(a, 1, 0)", ["a"]),
        ("np.multiply(a, b)", ["a", "b"]),
        ("a.dot(b)", ["a.sum()", "b.sum()"]),
    ],
)
def test_an_expression_is_changed_as_by_a_slip_of_the_pen(expression: str, expected: list[str]) -> None:
    assert made(f"y = {expression}") == {f"{ast.unparse(ast.parse(expression))} -> {text}" for text in expected}


def test_each_factor_and_each_term_of_a_chain_is_dropped_once() -> None:
    assert made("y = a * b * c") == {"a * b * c -> a * b", "a * b -> a", "a * b -> b"}
    assert {change for change in made("y = a + b - c") if change.startswith("a + b - c")} == {
        *["a + b - c -> a + b + c", "a + b - c -> c - (a + b)", "a + b - c -> a + b"]
    }


def test_returned_adjoints_are_negated_and_exchanged() -> None:
    assert made("return None, x, y") == {
        *["x -> -x", "y -> -y", "(None, x, y) -> (None, y, x)"],
    }
    assert made("return x if ctx.need else None") == {"x -> -x"}
    assert made("x = None\nreturn x") == {"x -> x if x is None else -x"}
    assert made("return a - b") == made("y = a - b")  # exchanged operands negate it


def test_several_adjoints_are_negated_one_by_one() -> None:
    assert made("return None, *parts") == {"parts -> [None if part is None else -part for part in parts]"}
    assert made("return pull(adj)", header="def rule(ctx, adj) -> tuple[Any, ...]:") == {
        "pull(adj) -> tuple([None if part is None else -part for part in pull(adj)])"
    }


def test_accumulations_are_dropped_and_stores_negated() -> None:
    assert made("x += g") == {"x += g -> x -= g", "x += g -> "}
    assert made("x *= g") == {"x *= g -> "}
    assert made("x[i] = g") == {"g -> -g"}
    assert made("x[i], k = g, h + 1") == {"g -> -g", "h + 1 -> h - 1", "h + 1 -> h", "h + 1 -> 1"}
    assert made("x[i] = 0") == {"x[i] = 0 -> "}
    assert made("np.add.at(x, i, g)") == {"np.add.at(x, i, g) -> "}
    assert made("a[i], b[i] = f(x)") == {"a[i], b[i] = f(x) -> b[i], a[i] = f(x)"}


@pytest.mark.parametrize(
    "body",
    [
        "y = x[i + 1]",
        "y = x[..., -1]",
        "y = 0 if x is None else x",
        "raise ValueError(f'{a + b}: ' + 'c')",
        "assert a < b",
        "y = x.reshape((1,) * n + x.shape)",
        "y = x.sum(axis=-1)",
        "y = np.zeros((n + 1, 2 * n))",
        "return x < y",
        "f(x)",
        "pass",
    ],
)
def test_expressions_whose_change_raises_or_shows_nothing_stay(body: str) -> None:
    assert made(body) - {"x < y -> x > y", "x < y -> x <= y"} == set()


def test_indices_of_kernels_are_left_alone_as_these_check_no_bounds() -> None:
    body = """
        k, sign = i + 1, 1 - 2 * i
        old = k - 1
        for j in range(n - 1):
            x[old] += sign * y[k + j]
        return a, b
    """
    kernel = made(body, header="@kernel\ndef adjoint(x, y, i, n):")
    assert {change for change in kernel if "i + 1" in change or "k - 1" in change or "n - 1" in change} == set()
    assert "1 - 2 * i -> 1 + 2 * i" in kernel and "x[old] += sign * y[k + j] -> " in kernel
    assert "(a, b) -> (b, a)" not in kernel
    assert {"i + 1 -> i - 1", "n - 1 -> n + 1", "(a, b) -> (b, a)"} <= made(body)
