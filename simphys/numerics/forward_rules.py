"""Tangents of expressions in the source of an element function: the rules of forward mode, as text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from simphys.autograd.kernels.runtime import ti

from .calls import by_position, is_outside, name_built_in
from .names import resolve

SPREAD = "_as_sum_with"
"""Name of `forward_mode.spread` in the text of a tangent."""
_SLOPES = {
    "sin": "ti.cos({x})",
    "cos": "-ti.sin({x})",
    "tan": "(1 + ti.tan({x}) * ti.tan({x}))",
    "asin": "(1 / ti.sqrt(1 - {x} * {x}))",
    "acos": "(-1 / ti.sqrt(1 - {x} * {x}))",
    "exp": "ti.exp({x})",
    "log": "(1 / {x})",
    "sqrt": "(0.5 / ti.sqrt({x}))",
    "rsqrt": "(-0.5 * ti.rsqrt({x}) / {x})",
    "tanh": "(1 - ti.tanh({x}) * ti.tanh({x}))",
    "abs": "ti.select({x} > 0, 1.0, ti.select({x} < 0, -1.0, 0.0))",
}
"""Derivative of each function of one number. That of the absolute value is 0 at 0."""
_FLAT = ("ceil", "floor", "round", "static")
"""Functions whose derivative is zero, or is not asked for: what is static is no number of the motion."""
_LISTS = ("Vector", "Matrix")
_BILINEAR = ("dot", "cross", "outer_product")
_LINEAR_MAPS = ("transpose", "sum", "trace")
_SIZES = ("n", "m", "width")
"""Attributes of vectors, matrices and arrays that are no numbers of the motion."""
_PARTS = frozenset("xyzw")
"""Letters of attributes that are entries of a vector."""


class Underivable(Exception):
    """Source that the rules of forward mode do not read: its line, beginning with 1, and what is there."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason
        self.place = ""
        """File and line, once the function is known."""


Found = TypeVar("Found")
Fresh = Callable[[], str]
"""Makes a name that no other variable has."""
Push = Callable[["Expressions", ast.Call, Any, list[str | None]], str]
"""Makes the text of a call of a function's tangent: from its call, what is called, and each argument's tangent."""


class Expressions:
    """The tangent of each expression of a function, where these names move; it holds parts that are read twice."""

    def __init__(self, known: Mapping[str, Any], tangents: Mapping[str, str], push: Push, fresh: Fresh) -> None:
        """known: what each name stands for, LOCAL for variables. tangents: the name of each moving one's tangent."""
        self._known, self._tangents, self._push, self._fresh = known, tangents, push, fresh
        self.held: dict[str, str] = {}
        """For each expression that is read twice, the variable that holds it, in order."""
        self._may_hold = True

    def tangent(self, value: ast.expr) -> str | None:
        """Tangent of an expression, in parentheses where it needs them; None if it stands still."""
        match value:
            case ast.Name(id=name):
                return self._tangents.get(name)
            case (
                ast.Constant() | ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.BinOp(op=ast.FloorDiv())
            ):
                return None
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
                return _map("-({})" if isinstance(op, ast.USub) else "{}", self.tangent(operand))
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                return self._sum(left, "+" if isinstance(op, ast.Add) else "-", right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._product("({} * {})", left, right)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._product("({} @ {})", left, right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._quotient(left, right)
            case ast.BinOp(left=left, op=ast.Mod(), right=right) if self.tangent(right) is None:
                return self.tangent(left)
            case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
                return self._power(base, exponent)
            case ast.Subscript(value=vector, slice=index):
                return _map(f"{{}}{ast.unparse(ast.Subscript(ast.Name(''), index))}", self.tangent(vector))
            case ast.Attribute(attr=name) if name in _SIZES:
                return None
            case ast.Attribute(value=vector, attr=name) if _PARTS.issuperset(name):
                return _map(f"{{}}.{name}", self.tangent(vector))
            case ast.IfExp(test=test, body=first, orelse=second):
                return self._either(f"({{}} if {ast.unparse(test)} else {{}})", first, second)
            case ast.Call():
                return self._call(value)
        self._require_still(value, ast.iter_child_nodes(value))
        return None

    def hold(self, value: ast.expr) -> str:
        """Text of an expression that is read again: a name that holds it, unless it is short."""
        text = ast.unparse(value)
        if isinstance(value, ast.Name | ast.Constant | ast.Subscript | ast.Attribute) or not self._may_hold:
            return f"({text})"
        return self._name_held(text)

    def hold_results(self, call: ast.Call, count: int) -> str:
        """Text of the results of a call that are read again, in order: names that hold them, where they can be held."""
        text = ast.unparse(call)
        if self._may_hold:
            return self._name_held(text, count)
        if count > 1:
            self._refuse(call, f"{text} with several results, within a choice or a list,")
        return text

    def _name_held(self, text: str, count: int = 1) -> str:
        if text not in self.held:
            self.held[text] = ", ".join([self._fresh() for _ in range(count)])
        return self.held[text]

    def _sum(self, left: ast.expr, sign: str, right: ast.expr) -> str | None:
        first, second = self.tangent(left), self.tangent(right)
        if first and second:
            return f"({first} {sign} {second})"
        moving, still = (first, right) if first else (_map("-({})" if sign == "-" else "{}", second), left)
        if moving is None or isinstance(still, ast.Constant):
            return moving
        return f"{SPREAD}({moving}, {ast.unparse(still)})"  # the sum of a number and a vector is a vector

    def _product(self, form: str, left: ast.expr, right: ast.expr) -> str | None:
        first, second = self.tangent(left), self.tangent(right)
        terms = [form.format(first, self.hold(right))] if first else []
        terms += [form.format(self.hold(left), second)] if second else []
        return f"({' + '.join(terms)})" if terms else None

    def _quotient(self, left: ast.expr, right: ast.expr) -> str | None:
        first, second = self.tangent(left), self.tangent(right)
        if second is None:
            return _map(f"({{}} / {self.hold(right)})", first)
        inverse = self.hold(ast.copy_location(ast.BinOp(ast.Constant(1.0), ast.Div(), right), right))
        lost = f"{self.hold(left)} * {inverse} * {second}"  # one division for value and tangent
        return f"(({first} - {lost}) * {inverse})" if first else f"(-({lost}) * {inverse})"

    def _power(self, base: ast.expr, exponent: ast.expr) -> str | None:
        if self.tangent(exponent):
            self._refuse(exponent, "an exponent that moves")
        d = self.tangent(base)
        if d and isinstance(exponent, ast.Constant) and exponent.value == 2:
            return f"(2 * {self.hold(base)} * {d})"
        n = f"({ast.unparse(exponent)})"
        return d and f"({n} * {self.hold(base)} ** ({n} - 1) * {d})"

    def _either(self, form: str, first: ast.expr, second: ast.expr) -> str | None:
        """Tangent of one of two; what only one of them can compute is held by neither."""
        d, e = self._unheld(lambda: (self.tangent(first), self.tangent(second)))
        if d is None and e is None:
            return None
        return form.format(or_zero(d, first), or_zero(e, second))

    def _unheld(self, find: Callable[[], Found]) -> Found:
        """Find tangents of what cannot be computed ahead."""
        before, self._may_hold = self._may_hold, False
        found = find()
        self._may_hold = before
        return found

    def _call(self, call: ast.Call) -> str | None:
        called = resolve(call.func, self._known)
        if isinstance(call.func, ast.Attribute) and not is_outside(call.func.value, self._known):
            return self._method(call, call.func.value, call.func.attr)
        name = name_built_in(called)
        if call.keywords and name is None:
            call = by_position(call, called)
        if any([isinstance(argument, ast.Starred) for argument in call.args]) or (call.keywords and name not in _LISTS):
            self._require_still(call, [*call.args, *call.keywords])
            return None
        if name is not None:
            return self._built_in(call, name)
        tangents = [self.tangent(argument) for argument in call.args]
        if not any(tangents) or called in (int, bool):
            return None
        return tangents[0] if called is float else self._push(self, call, called, tangents)

    def _built_in(self, call: ast.Call, name: str) -> str | None:
        arguments = call.args
        if name in _LISTS and arguments:
            d = _map(f"ti.{name}({{}})", self._list(arguments[0]))
            if d and any([self._is_whole(kind) for kind in (*arguments[1:], *[each.value for each in call.keywords])]):
                self._refuse(call, "a list of whole numbers that move")
            return d
        if name == "cast":
            return self._cast(arguments[0], arguments[1])
        if name == "select":
            return self._either(f"ti.select({ast.unparse(arguments[0])}, {{}}, {{}})", *arguments[1:])
        if name == "static":
            self._require_still(call, arguments)
        if name in _FLAT:
            return None
        tangents = [self.tangent(argument) for argument in arguments]
        if not any(tangents):
            return None
        if name in _SLOPES:
            return f"({_SLOPES[name].format(x=self.hold(arguments[0]))} * {tangents[0]})"
        if name == "pow":
            return self._power(*arguments)
        if name in ("max", "min"):
            *others, last = arguments
            first = ast.copy_location(ast.Call(call.func, others, []), call) if len(others) > 1 else others[0]
            return self._extreme(">" if name == "max" else "<", first, last)
        if name == "atan2":
            y, x = map(self.hold, arguments)
            terms = [f"{x} * {tangents[0]}"] if tangents[0] else []
            terms += [f"-{y} * {tangents[1]}"] if tangents[1] else []
            return f"(({' + '.join(terms)}) / ({x} * {x} + {y} * {y}))"
        self._refuse(call, f"ti.{name}")

    def _extreme(self, sign: str, first: ast.expr, second: ast.expr) -> str | None:
        """Tangent of the larger or the smaller of two: at a tie that of what stands still, or else of the second."""
        if self.tangent(first) is None:
            first, second = second, first
        return self._either(f"ti.select({self.hold(first)} {sign} {self.hold(second)}, {{}}, {{}})", first, second)

    def _method(self, call: ast.Call, vector: ast.expr, name: str) -> str | None:
        if name in _BILINEAR and len(call.args) == 1:
            return self._product(f"{{}}.{name}({{}})", vector, call.args[0])
        if name == "cast" and len(call.args) == 1:
            return self._cast(vector, call.args[0])
        d = self.tangent(vector)
        given = [*call.args, *call.keywords]
        if d is None or (given and name != "norm"):
            self._require_still(call, [vector, *given])
            return None
        v = self.hold(vector)
        if name in _LINEAR_MAPS:
            return f"{d}.{name}()"
        if name == "norm_sqr":
            return f"(2 * ({v} * {d}).sum())"
        if name == "normalized":
            unit = f"{v}.normalized()"
            return f"(({d} - {unit} * {unit}.dot({d})) / {v}.norm())"
        if name == "norm":  # its derivative is 0 at 0
            self._require_still(call, given)
            length = f"{v}.norm({', '.join(map(ast.unparse, given))})"
            return f"(({v} * {d}).sum() / ti.select({length} > 0, {length}, 1.0))"
        if name == "inverse":
            return f"(-({v}.inverse() @ {d} @ {v}.inverse()))"
        if name == "determinant":
            return f"({v}.determinant() * ({v}.inverse() @ {d}).trace())"
        self._refuse(call, f"the method {name}")

    def _cast(self, value: ast.expr, to: ast.expr) -> str | None:
        """Tangent of a number that gets another type: a whole one stands still."""
        return None if self._is_whole(to) else self.tangent(value)

    def _is_whole(self, kind: ast.expr) -> bool:
        found, kinds = resolve(kind, self._known), ti.types.primitive_types
        if found not in (int, bool, float, *kinds.integer_types, *kinds.real_types):
            self._refuse(kind, f"the type {ast.unparse(kind)}")
        return found in (int, bool, *kinds.integer_types)

    def _list(self, value: ast.expr) -> str | None:
        """Tangent of a list of numbers, or of rows of these."""
        if isinstance(value, ast.ListComp):
            self._require_still(value, [part for each in value.generators for part in (each.iter, *each.ifs)])
            rest = ast.unparse(value)[len(ast.unparse(value.elt)) + 1 :]
            return self._unheld(lambda: _map(f"[{{}}{rest}", self._entry(value.elt)))
        if not isinstance(value, ast.List):
            self._require_still(value, [value])
            return None
        found = [self._entry(part) for part in value.elts]
        if not any(found):
            return None
        zeros = [_zeros(part) for part in value.elts]
        return f"[{', '.join([d or zero for d, zero in zip(found, zeros, strict=True)])}]"

    def _entry(self, value: ast.expr) -> str | None:
        return self._list(value) if isinstance(value, ast.List | ast.ListComp) else self.tangent(value)

    def _require_still(self, value: ast.expr, parts: Iterable[ast.AST]) -> None:
        """Raise Underivable if a part of an expression moves."""
        parts = list(parts)
        names = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
        if names & self._tangents.keys() and any([self._moves(part) for part in parts]):
            self._refuse(value, ast.unparse(value))

    def _moves(self, part: ast.AST) -> bool:
        if isinstance(part, ast.expr):
            return self.tangent(part) is not None
        return any([self._moves(each) for each in ast.iter_child_nodes(part)])

    @staticmethod
    def _refuse(value: ast.expr, what: str) -> NoReturn:
        raise Underivable(value.lineno, f"{what} has no rule of forward mode")


def _map(form: str, tangent: str | None) -> str | None:
    return None if tangent is None else form.format(tangent)


def or_zero(tangent: str | None, value: ast.expr) -> str:
    """Text of the tangent of a value that may stand still."""
    return tangent or f"(0.0 * ({ast.unparse(value)}))"


def _zeros(value: ast.expr) -> str:
    """Text of the tangent of an entry of a list that stands still."""
    if isinstance(value, ast.List):
        return f"[{', '.join([_zeros(part) for part in value.elts])}]"
    if isinstance(value, ast.ListComp):
        return f"[{_zeros(value.elt)}{ast.unparse(value)[len(ast.unparse(value.elt)) + 1 :]}"
    return "0.0"
