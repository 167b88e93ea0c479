"""Parameters that each result of a function depends on: read from its source."""

from __future__ import annotations

import ast

from simphys.autograd.errors import InputError

from .places import collect_names
from .writes import Written


def find_dependencies(
    definition: ast.FunctionDef, parameters: tuple[str, ...], written: tuple[Written, ...]
) -> tuple[frozenset[str], ...]:
    """Find the parameters that each result depends on. Errors: InputError for returns that do not fit each other."""
    slices = _Slices()
    slices.visit(definition.body, set())
    for each in written:
        slices.edges.setdefault(each.name, set()).update(collect_names(each.call))
    found, source = slices.results, f"element {definition.name}"
    remedy = "Return the same number of values in all branches."
    for values in found[1:]:
        if len(values) != len(found[0]):
            raise InputError(source, f"it returns {len(found[0])} values", f"{len(values)}", remedy)
    if not found:
        raise InputError(source, "an element function returns its results", "no return", "Add one.")
    columns = [set().union(*column) for column in zip(*found, strict=True)]
    return tuple([frozenset(_closure(names, slices.edges)) & frozenset(parameters) for names in columns])


class _Slices:
    """Names that variables and results depend on, by the source of a function, whatever the order of statements."""

    def __init__(self) -> None:
        self.edges: dict[str, set[str]] = {}
        self.results: list[list[set[str]]] = []
        """Names in the results of each return statement."""

    def visit(self, statements: list[ast.stmt], conditions: set[str]) -> None:
        """Go through statements that run under conditions on these names."""
        for node in statements:
            for part in ast.walk(node):
                if isinstance(part, ast.NamedExpr):
                    self._assign(part.target, collect_names(part.value) | conditions)
            if isinstance(node, ast.Return):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                self.results.append([collect_names(value) | conditions for value in values])
            elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._assign(target, collect_names(node.value) | conditions)
            elif isinstance(node, ast.Expr):  # a call that writes a variable
                for name in collect_names(node.value):
                    self.edges.setdefault(name, set()).update(conditions)
            elif isinstance(node, ast.If):
                inside = conditions | collect_names(node.test)
                self.visit(node.body, inside)
                self.visit(node.orelse, inside)
            elif isinstance(node, ast.While | ast.For):
                inside = conditions | collect_names(node.test if isinstance(node, ast.While) else node.iter)
                inside |= _conditions_of_jumps(node)
                if isinstance(node, ast.For):
                    self._assign(node.target, inside)
                self.visit([*node.body, *node.orelse], inside)

    def _assign(self, target: ast.expr, sources: set[str]) -> None:
        for changed in collect_names(target):
            self.edges.setdefault(changed, set()).update(sources | collect_names(target) - {changed})


def _conditions_of_jumps(loop: ast.While | ast.For) -> set[str]:
    """Collect the names that decide whether a loop breaks, continues or returns: all that it does depends on them."""
    conditional = [part for part in ast.walk(loop) if isinstance(part, ast.If | ast.While)]
    return set().union(*[collect_names(part.test) for part in conditional if any(map(_is_jump, ast.walk(part)))])


def _is_jump(node: ast.AST) -> bool:
    return isinstance(node, ast.Break | ast.Continue | ast.Return)


def _closure(names: set[str], edges: dict[str, set[str]]) -> set[str]:
    found, new = set(names), set(names)
    while new:
        new = set().union(*[edges.get(name, set()) for name in new]) - found
        found |= new
    return found
