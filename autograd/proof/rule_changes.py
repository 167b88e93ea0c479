"""The single changes that `mutation` makes in a rule, each like a slip of the pen.

Unchanged are subscripts, error messages, tests for None, literals, and arithmetic with tuples, where a change raises by
itself. Unchanged is also all that could write to foreign memory, as kernels check no bounds: the sizes of new arrays
and, in kernels (decorated functions), `range` and values that become an index. The results of kernels' functions are
not exchanged, as a compiler may fail on a vector in place of a number.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import NamedTuple


class Change(NamedTuple):
    """A node and the text that replaces it."""

    node: ast.expr | ast.stmt
    text: str
    """Empty if the statement is left out."""


_SUMS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_PRODUCTS = (ast.Mult, ast.Div)
_CALLED = {"add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult, "divide": ast.Div, "true_divide": ast.Div}
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.Gt, ast.LtE),
    ast.Gt: (ast.Lt, ast.GtE),
    ast.LtE: (ast.GtE, ast.Lt),
    ast.GtE: (ast.LtE, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_PARTNERS = {"sin": "cos", "max": "min", "maximum": "minimum", "sinh": "cosh", "arcsin": "arccos"}
_PARTNERS |= {other: name for name, other in _PARTNERS.items()}
_ELEMENTARY = {"sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "square", "sign", "abs", "absolute"}
_BRANCHES = {"where", "select"}
_ALLOCATIONS = {"empty", "zeros", "ones", "full", "device_array"}
_TRANSPOSES = {"transpose", "swapaxes", "moveaxis", "matrix_transpose"}
_MODULES = {"np", "numpy", "ti", "math", "ops"}
_TRUTHS = (ast.Compare, ast.BoolOp)
_PLAIN = {"staticmethod", "classmethod"}


def changes(function: ast.FunctionDef) -> Iterator[Change]:
    """All changes of the body of a function."""
    rule = _Rule(function)
    for statement in function.body:
        yield from rule.within(statement)


class _Rule:
    """The changes of the nodes of a function."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.compiled = any(ast.unparse(decorator) not in _PLAIN for decorator in function.decorator_list)
        self.indices = _index_names(function) if self.compiled else set()
        self.several = function.returns is not None and ast.unparse(function.returns).startswith("tuple")
        self.optional = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def within(self, node: ast.AST) -> Iterator[Change]:
        """The changes of a node and of its parts."""
        match node:
            case ast.Subscript(value=value):
                yield from self.within(value)
            case ast.FunctionDef():
                yield from changes(node)
            case ast.Assign():
                yield from self._of_assignment(node)
            case _ if not self._stays(node):
                yield from self._of_statement(node)
                if isinstance(node, ast.expr):
                    yield from [Change(node, ast.unparse(new)) for new in _alternatives(node)]
                for child in ast.iter_child_nodes(node):
                    yield from self.within(child)

    def _stays(self, node: ast.AST) -> bool:
        match node:
            case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Constant():
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name in _ALLOCATIONS or (name == "range" and self.compiled)
            case ast.AugAssign(target=target):
                return self._is_index(target)
        return False

    def _of_assignment(self, node: ast.Assign) -> Iterator[Change]:
        """Stored values with the other sign, a number not stored, exchanged targets, and changes inside the values."""
        pairs = [(node.targets[0], node.value)]
        match node:
            case ast.Assign(targets=[ast.Subscript()], value=ast.Constant()):
                yield Change(node, "")
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Subscript() as a, ast.Subscript() as b])], value=ast.Call()):
                yield Change(node, f"{ast.unparse(b)}, {ast.unparse(a)} = {ast.unparse(node.value)}")
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                pairs = list(zip(targets, values, strict=False))
        for target, value in pairs:
            if not self._is_index(target):
                if isinstance(target, ast.Subscript) and len(node.targets) == 1:
                    yield from self._negate(value)
                yield from self.within(value)

    def _of_statement(self, node: ast.AST) -> Iterator[Change]:
        """Accumulations reversed and dropped, results negated and exchanged."""
        match node:
            case ast.AugAssign(target=target, op=op, value=value):
                if type(op) in _SUMS:
                    yield Change(node, ast.unparse(ast.AugAssign(target, _SUMS[type(op)](), value)))
                yield Change(node, "")
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))) if name == "at" or name.startswith("atomic_"):
                yield Change(node, "")
            case ast.Return(value=ast.Tuple() as results):
                yield from self._results(results)
            case ast.Return(value=ast.Call() as result) if self.several or _is_tuple(result):
                yield Change(result, f"tuple({_negate_parts(result)})")
            case ast.Return(value=ast.expr() as result):
                yield from self._negate(result)

    def _is_index(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Tuple):
            return all(self._is_index(element) for element in target.elts)
        return isinstance(target, ast.Name) and target.id in self.indices

    def _results(self, results: ast.Tuple) -> Iterator[Change]:
        """Each returned value negated, and each exchanged with the next."""
        elements = results.elts
        for element in elements:
            yield from self._negate(element)
        for i, pair in enumerate([] if self.compiled else itertools.pairwise(elements)):
            if not any(isinstance(element, ast.Constant | ast.Starred) for element in pair):
                exchanged = [*elements[:i], *reversed(pair), *elements[i + 2 :]]
                yield Change(results, ast.unparse(ast.Tuple(exchanged, ast.Load())))

    def _negate(self, value: ast.expr) -> Iterator[Change]:
        """A stored or returned value with the other sign, unless another change gives the same."""
        match value:
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._negate(body)
                yield from self._negate(orelse)
            case ast.Starred(value=several):
                yield Change(several, _negate_parts(several))
            case ast.Name(id=name) if name in self.optional:
                yield Change(value, f"{name} if {name} is None else -{name}")
            case ast.Constant() | ast.UnaryOp() | ast.BinOp(op=ast.Sub() | ast.BitAnd() | ast.BitOr()):
                pass
            case _ if not isinstance(value, _TRUTHS) and not _is_tuple(value):
                yield Change(value, ast.unparse(ast.UnaryOp(ast.USub(), value)))


def _negate_parts(several: ast.expr) -> str:
    return f"[None if part is None else -part for part in {ast.unparse(several)}]"


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions to which an expression itself, apart from its parts, is changed."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.BinOp(left=left, op=op, right=right):
            yield from _alternative_operations(left, op, right)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            for other in _COMPARISONS.get(type(op), ()):
                yield ast.Compare(left, [other()], [right])
        case ast.Attribute(value=value, attr="T" | "mT"):
            yield value
        case ast.Call():
            yield from _alternative_calls(node)


def _alternative_operations(left: ast.expr, op: ast.operator, right: ast.expr) -> Iterator[ast.expr]:
    """The operation with another sign, with exchanged operands, and without each operand that is no such operation."""
    if _is_tuple(left) or _is_tuple(right):
        return
    match op:
        case ast.Add() | ast.Sub():
            yield ast.BinOp(left, _SUMS[type(op)](), right)
            if isinstance(op, ast.Sub):
                yield ast.BinOp(right, op, left)
            yield left
            if not (isinstance(left, ast.BinOp) and type(left.op) in _SUMS):
                yield right if isinstance(op, ast.Add) else ast.UnaryOp(ast.USub(), right)
        case ast.Mult() | ast.Div():
            if isinstance(op, ast.Div):
                yield ast.BinOp(right, op, left)
            yield left
            one = isinstance(left, ast.Constant) and left.value == 1
            if not one and not (isinstance(left, ast.BinOp) and isinstance(left.op, _PRODUCTS)):
                yield right if isinstance(op, ast.Mult) else ast.BinOp(ast.Constant(1), op, right)
        case ast.MatMult():
            yield ast.BinOp(right, op, left)
        case ast.BitAnd() | ast.BitOr():
            yield left
            yield right
        case ast.Pow():
            yield left


def _is_tuple(value: ast.expr) -> bool:
    """True if a value is a tuple or list, or made of one: `(1,) * n + shape`."""
    match value:
        case ast.BinOp(left=left, right=right):
            return _is_tuple(left) or _is_tuple(right)
        case ast.Call(func=ast.Name(id="tuple" | "list")) | ast.Tuple() | ast.List():
            return True
    return False


def _alternative_calls(call: ast.Call) -> Iterator[ast.expr]:
    """Exchanged branches, the partner of the function, its argument alone, a dot product without a factor."""
    match call.func:
        case ast.Name(id=name):
            owner = None
        case ast.Attribute(attr=name, value=ast.Name(id=module)) if module in _MODULES:
            owner = None
        case ast.Attribute(attr=name, value=value):
            owner = value
        case _:
            return
    arguments = call.args if owner is None else [owner, *call.args]
    plain = not call.keywords and not any(isinstance(argument, ast.Starred) for argument in arguments)
    if name in _BRANCHES and len(call.args) == 3:
        condition, yes, no = call.args
        yield ast.Call(call.func, [condition, no, yes], call.keywords)
    if name in _PARTNERS:
        yield ast.Call(_rename(call.func, _PARTNERS[name]), call.args, call.keywords)
    if name in _TRANSPOSES or (name in _ELEMENTARY and len(arguments) == 1):
        yield arguments[0]
    if name in _CALLED and owner is None and plain and len(arguments) == 2:
        yield from _alternative_operations(arguments[0], _CALLED[name](), arguments[1])
    if name == "dot" and len(arguments) == 2:
        for factor in arguments:
            yield ast.Call(ast.Attribute(factor, "sum", ast.Load()), [], [])


def _rename(function: ast.expr, name: str) -> ast.expr:
    if isinstance(function, ast.Attribute):
        return ast.Attribute(function.value, name, ast.Load())
    return ast.Name(name, ast.Load())


def _index_names(function: ast.FunctionDef) -> set[str]:
    """The names that a subscript or a range reads, and those that they are computed from."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript):
            names |= _read_names(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            names |= _read_names(node)
    assignments = [
        (_written_names(target), _read_names(node.value))
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
    ]
    while more := set().union(*[read for written, read in assignments if written and written <= names]) - names:
        names |= more
    return names


def _read_names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _written_names(target: ast.expr) -> set[str]:
    elements = target.elts if isinstance(target, ast.Tuple) else [target]
    return {element.id for element in elements if isinstance(element, ast.Name)}
