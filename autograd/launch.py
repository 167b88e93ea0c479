"""`kernel`: a compiled kernel that checks its arguments and launches them fast.

The public call of the compiler spends 20-70 us on argument handling. Here a launch context is made once for a compiled
variant and its pointers are set again (about 1 us an argument), or, by `bind`, not even that. This uses private interfaces
of a pinned release; without them every launch takes the public path.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

from . import runtime
from .errors import InputError
from .tensor import Tensor

ti = runtime.ti


class Kernel:
    """A kernel of the compiler behind checks of count, dtype, shape of elements, contiguity and writability."""

    def __init__(self, function: Callable[..., None]) -> None:
        self.name = function.__name__
        self.parameters = list(inspect.signature(function).parameters)
        self.written = written_parameters(function)
        self._kernel = ti.kernel(function)
        annotations = inspect.get_annotations(function)
        self._arguments = [_describe(annotations[name]) for name in self.parameters]
        self._compiled: Any = None
        self._context: Any = None

    def __call__(self, *arguments: Any) -> None:
        """Launch. Arrays are NumPy arrays or Tensors (a written Tensor's version is raised); scalars are numbers."""
        values = self._check(arguments)
        if not self._direct(values):
            self._kernel(*values)
            return
        context = self._context
        for index, ((kind, _, skip), value) in enumerate(zip(self._arguments, values, strict=True)):
            _set(context, index, kind, value, skip)
        self._program.launch_kernel(self._compiled, context)

    def bind(self, *arguments: Any) -> Callable[..., None]:
        """A launch with these arguments, checked now, repeated later without argument handling (about 2 us).

        Trailing scalars may be left open: `bound = kernel.bind(x, y)`, then `bound(3)`.
        """
        values = self._check(arguments, partial=True)
        if not self._direct(values):
            return lambda *rest: self._kernel(*values, *rest)
        context = self._launchable.make_launch_context()
        for index, ((kind, _, skip), value) in enumerate(zip(self._arguments, values, strict=False)):
            _set(context, index, kind, value, skip)
        launch, compiled, first = self._program.launch_kernel, self._compiled, len(values)
        open_kinds = [kind for kind, _, _ in self._arguments[first:]]

        def launch_bound(*rest: float, keep_alive: Any = values) -> None:
            for offset, kind in enumerate(open_kinds):
                _set(context, first + offset, kind, rest[offset], 0)
            launch(compiled, context)

        return launch_bound

    def _check(self, arguments: tuple[Any, ...], *, partial: bool = False) -> list[Any]:
        open_scalars = partial and all(kind != "array" for kind, _, _ in self._arguments[len(arguments) :])
        if len(arguments) != len(self._arguments) and not open_scalars:
            raise InputError(
                f"kernel {self.name}",
                f"it takes {len(self._arguments)} arguments",
                f"{len(arguments)}",
                f"Pass {', '.join(self.parameters)}.",
            )
        values = []
        for name, (kind, dtype, skip), value in zip(self.parameters, self._arguments, arguments, strict=False):
            if kind == "array":
                written = name in self.written
                if isinstance(value, Tensor):
                    if written:
                        value.raise_version()
                    value = value.data
                elif type(value) is np.ndarray and written and not value.flags.writeable:
                    raise self._error(
                        name,
                        "it writes to this argument",
                        "a read-only array",
                        "Pass a Tensor, whose version is raised, or a writable array.",
                    )
                if type(value) is np.ndarray:
                    if (
                        value.dtype != dtype[0]
                        or value.shape[value.ndim - len(dtype[1]) :] != dtype[1]
                        or value.ndim != dtype[2]
                    ):
                        raise self._error(
                            name,
                            f"{dtype[2]}-d array of {dtype[0]} whose last axes are {dtype[1]}",
                            f"{value.dtype} of shape {value.shape}",
                            "Convert it first.",
                        )
                    if not value.flags.c_contiguous:
                        raise self._error(
                            name, "arrays are C-contiguous", f"strides {value.strides}", "Use np.ascontiguousarray."
                        )
            values.append(value)
        return values

    def _error(self, name: str, constraint: str, found: str, remedy: str) -> InputError:
        return InputError(f"kernel {self.name}, argument {name}", constraint, found, remedy)

    def _direct(self, values: list[Any]) -> bool:
        """Whether a raw launch context can be used; compiles at the first call."""
        if runtime.settings().on_gpu or runtime.compiler != "taichi":
            return False
        if self._compiled is None:
            primal = self._kernel._primal
            self._program = ti.lang.impl.get_runtime().prog
            self._launchable = primal.compiled_kernels[
                primal.ensure_compiled(*values, *[0] * (len(self._arguments) - len(values)))
            ]
            self._compiled = self._program.compile_kernel(
                self._program.config(), self._program.get_device_caps(), self._launchable
            )
            self._context = self._launchable.make_launch_context()
        return True


def kernel(function: Callable[..., None]) -> Kernel:
    """Decorator: compile a kernel written for the compiler, see `Kernel`."""
    return Kernel(function)


def _describe(annotation: Any) -> tuple[str, Any, int]:
    """(kind, (dtype, element shape, NumPy's ndim), number of element axes) of an annotated parameter."""
    ndarray_type = type(ti.types.ndarray(dtype=ti.f32, ndim=1))
    if isinstance(annotation, ndarray_type):
        element = annotation.dtype
        shape: tuple[int, ...] = ()
        if hasattr(element, "get_shape"):
            shape, element = tuple(element.get_shape()), element.dtype
        dtype = np.dtype(ti.lang.util.to_numpy_type(element))
        return "array", (dtype, shape, annotation.ndim + len(shape)), len(shape)
    return ("int" if annotation in (ti.i32, ti.i64, int) else "float"), None, 0


def _set(context: Any, index: int, kind: str, value: Any, skip: int) -> None:
    if kind == "array":
        shape = value.shape[: value.ndim - skip] if skip else value.shape
        context.set_arg_external_array_with_shape(
            (index,), value.__array_interface__["data"][0], value.nbytes, shape, 0
        )
    elif kind == "int":
        context.set_arg_int((index,), value)
    else:
        context.set_arg_float((index,), value)


def written_parameters(function: Callable[..., None]) -> frozenset[str]:
    """Parameters that the source may write: subscripted on the left of an assignment, or handed to a function that does.

    What cannot be resolved counts as written: a false alarm is an error message, a missed write a wrong gradient.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    names = list(inspect.signature(function).parameters)
    scopes = inspect.getclosurevars(function)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            targets = [
                part for target in node.targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call):
            targets = _written_arguments(node, {**scopes.globals, **scopes.nonlocals})
        else:
            continue
        found.update(name for name in map(_base_name, targets) if name in names)
    return frozenset(found)


def _base_name(expression: ast.expr) -> str | None:
    """`a` of a, a[i], a[i][j] or a[i].x."""
    while isinstance(expression, ast.Subscript | ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def _written_arguments(call: ast.Call, scope: dict[str, Any]) -> list[ast.expr]:
    """The arguments of a call that the callee may write: whole arrays, and the operand of ti.atomic_*."""
    if isinstance(call.func, ast.Attribute) and call.func.attr.startswith("atomic"):
        return call.args[:1]
    whole = [argument for argument in call.args if isinstance(argument, ast.Name)]
    try:
        callee = eval(compile(ast.Expression(call.func), "<callee>", "eval"), scope)
    except (NameError, AttributeError):
        return list(whole)
    source = getattr(callee, "__wrapped__", None)
    if source is None or not whole:  # a built-in, a type or ti.static: these take values
        return []
    written = written_parameters(source)
    parameters = list(inspect.signature(source).parameters)
    return [a for a, name in zip(call.args, parameters, strict=False) if isinstance(a, ast.Name) and name in written]
