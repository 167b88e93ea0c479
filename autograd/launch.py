"""`kernel`: a compiled kernel that checks its arguments and launches them fast.

The public call of the compiler spends 20-70 us on argument handling. Here a launch context is made once for a compiled
variant and its pointers are set again (about 1 us an argument), or, by `bind`, not even that. This uses private
interfaces of pinned releases of both compilers. On a GPU, or without them, every launch takes the public path.
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


_QUADRANTS = runtime.compiler == "quadrants"
_INTEGERS = (int, np.integer)
_NUMBERS = (float, int, np.number)


class Kernel:
    """A kernel of the compiler behind checks of count, dtype, shape of elements, contiguity and writability."""

    def __init__(self, function: Callable[..., None]) -> None:
        self.name = function.__name__
        self.parameters = list(inspect.signature(function).parameters)
        self.written = written_parameters(function)
        annotations = inspect.get_annotations(function)
        self._arguments = [_describe(name, annotations.get(name)) for name in self.parameters]
        arrays = [kind == "array" for kind, _, _ in self._arguments]
        self._written_positions = [i for i, name in enumerate(self.parameters) if arrays[i] and name in self.written]
        self._kernel = ti.kernel(function)
        self._compiled: Any = None
        self._context: Any = None
        self._public = False

    def __call__(self, *arguments: Any) -> None:
        """Launch. Arrays are NumPy arrays or Tensors (a written Tensor's version is raised); scalars are numbers."""
        values = self._check(arguments)
        for tensor in self._written_tensors(arguments):
            tensor.raise_version()
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
        first = len(values)
        if not self._direct(values):
            return lambda *rest: self(*arguments, *rest)
        context = self._launchable.make_launch_context()
        for index, ((kind, _, skip), value) in enumerate(zip(self._arguments, values, strict=False)):
            _set(context, index, kind, value, skip)
        launch, compiled = self._program.launch_kernel, self._compiled
        open_names, open_kinds = self.parameters[first:], [kind for kind, _, _ in self._arguments[first:]]
        written = self._written_tensors(arguments)

        def launch_bound(*rest: float, keep_alive: Any = values) -> None:
            if len(rest) != len(open_kinds):
                raise self._count(len(rest), open_names)
            for offset, kind in enumerate(open_kinds):
                _set(context, first + offset, kind, rest[offset], 0)
            for tensor in written:
                tensor.raise_version()
            launch(compiled, context)

        return launch_bound

    def _check(self, arguments: tuple[Any, ...], *, partial: bool = False) -> list[Any]:
        open_scalars = (
            partial
            and len(arguments) < len(self._arguments)
            and all(kind != "array" for kind, _, _ in self._arguments[len(arguments) :])
        )
        if len(arguments) != len(self._arguments) and not open_scalars:
            raise self._count(len(arguments), self.parameters)
        values = []
        for name, (kind, expected, _), value in zip(self.parameters, self._arguments, arguments, strict=False):
            if kind == "array":
                value = self._array(name, expected, value)
            elif kind == "float":
                if not isinstance(value, _NUMBERS):
                    raise self._error(name, "it is a number", repr(value), "Pass a float.")
            elif not isinstance(value, _INTEGERS) or not expected[0] <= value <= expected[1]:
                raise self._error(
                    name, f"it is an integer within {expected}", repr(value), "Pass an int in this range."
                )
            values.append(value)
        return values

    def _array(self, name: str, expected: tuple[Any, tuple[int, ...], int], value: Any) -> Any:
        """The checked memory of an array argument."""
        if isinstance(value, Tensor):
            value = value.data
        elif not isinstance(value, np.ndarray):
            if isinstance(value, ti.lang._ndarray.Ndarray):
                return value  # memory of a device: the compiler checks it
            raise self._error(name, "it is an array", repr(value), "Pass a NumPy array or a Tensor.")
        elif name in self.written and not value.flags.writeable:
            remedy = "Pass a Tensor, whose version is raised, or a writable array."
            raise self._error(name, "it writes to this argument", "a read-only array", remedy)
        dtype, element, ndim = expected
        if value.dtype != dtype or value.ndim != ndim or value.shape[ndim - len(element) :] != element:
            found = f"{value.dtype} of shape {value.shape}"
            ending = f" whose last axes are {element}" if element else ""
            raise self._error(name, f"it is a {ndim}-d array of {dtype}{ending}", found, "Convert it first.")
        if not value.flags.c_contiguous:
            raise self._error(name, "arrays are C-contiguous", f"strides {value.strides}", "Use np.ascontiguousarray.")
        return value

    def _written_tensors(self, arguments: tuple[Any, ...]) -> list[Tensor]:
        return [arguments[i] for i in self._written_positions if isinstance(arguments[i], Tensor)]

    def _count(self, found: int, names: list[str]) -> InputError:
        who = f"kernel {self.name}"
        return InputError(who, f"it takes {len(names)} arguments", f"{found}", f"Pass {', '.join(names) or 'none'}.")

    def _error(self, name: str, constraint: str, found: str, remedy: str) -> InputError:
        return InputError(f"kernel {self.name}, argument {name}", constraint, found, remedy)

    def _direct(self, values: list[Any]) -> bool:
        """Whether a raw launch context can be used; compiles at the first call."""
        if self._public or runtime.settings().on_gpu:
            return False
        if self._compiled is None:
            try:
                self._compile(values)
            except AttributeError:  # another release, without these interfaces
                self._public = True
        return not self._public

    def _compile(self, values: list[Any]) -> None:
        primal = self._kernel._primal
        program = self._program = ti.lang.impl.get_runtime().prog
        primal.raise_on_templated_floats = False  # quadrants reads it, the public call sets it
        variant = primal.ensure_compiled(*values, *[0] * (len(self._arguments) - len(values)))
        variants = primal.materialized_kernels if _QUADRANTS else primal.compiled_kernels
        self._launchable = variants[variant]
        compiled = program.compile_kernel(program.config(), program.get_device_caps(), self._launchable)
        compiled = compiled.compiled_kernel_data if _QUADRANTS else compiled
        self._context = self._launchable.make_launch_context()
        self._compiled = compiled


def kernel(function: Callable[..., None]) -> Kernel:
    """Decorator: compile a kernel written for the compiler, see `Kernel`."""
    return Kernel(function)


def _describe(name: str, annotation: Any) -> tuple[str, Any, int]:
    """(kind, what is expected, number of element axes) of an annotated parameter.

    Expected is (dtype, element shape, NumPy's ndim) of an array, (lowest, highest) of an integer.
    """
    ndarray_type = type(ti.types.ndarray(dtype=ti.f32, ndim=1))
    if isinstance(annotation, ndarray_type):
        element = annotation.dtype
        shape: tuple[int, ...] = ()
        if hasattr(element, "get_shape"):
            shape, element = tuple(element.get_shape()), element.dtype
        dtype = np.dtype(ti.lang.util.to_numpy_type(element))
        return "array", (dtype, shape, annotation.ndim + len(shape)), len(shape)
    if annotation in (ti.f32, ti.f64, float):
        return "float", None, 0
    if annotation in (ti.i32, ti.i64, int):
        limits = np.iinfo(np.int64 if annotation == ti.i64 else np.int32)
        return "int", (int(limits.min), int(limits.max)), 0
    remedy = "Annotate it with ti.types.ndarray(dtype=..., ndim=...), ti.i32, ti.i64 or a real type."
    raise InputError(
        f"kernel parameter {name}", "it is an array, an integer or a real number", repr(annotation), remedy
    )


def _set(context: Any, position: int, kind: str, value: Any, skip: int) -> None:
    index: Any = position if _QUADRANTS else (position,)
    if kind == "array":
        shape = value.shape[: value.ndim - skip] if skip else value.shape
        context.set_arg_external_array_with_shape(index, value.__array_interface__["data"][0], value.nbytes, shape, 0)
    elif kind == "int":
        context.set_arg_int(index, value)
    else:
        context.set_arg_float(index, value)


def written_parameters(function: Callable[..., None]) -> frozenset[str]:
    """Parameters that the source may write: on the left of an assignment, or handed to a function that does.

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
    """The arguments of a call that the callee may write: arrays, elements by reference, the first of ti.atomic_*."""
    if isinstance(call.func, ast.Attribute) and call.func.attr.startswith("atomic"):
        return call.args[:1]
    try:
        callee = eval(compile(ast.Expression(call.func), "<callee>", "eval"), scope)
    except (NameError, AttributeError):
        return [argument for argument in call.args if isinstance(argument, ast.Name)]
    source = getattr(callee, "__wrapped__", None)
    if source is None:  # a built-in, a type or ti.static: these take values
        return []
    parameters = inspect.signature(source).parameters
    passed = dict(zip(parameters, call.args, strict=False))
    passed |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    written = written_parameters(source)
    references = [
        name for name, p in parameters.items() if p.annotation is ti.template or type(p.annotation) is ti.template
    ]
    return [a for name, a in passed.items() if name in written and (isinstance(a, ast.Name) or name in references)]
