"""`kernel`: a compiled kernel that checks its arguments and launches them fast.

The public call of the compiler spends 15-70 us on argument handling. Here a launch context is made once for a compiled
variant, and a launch only sets its pointers (about 1 us an argument); a launch by `bind` does not even do that. This
uses private interfaces of pinned releases of both compilers. Without these interfaces, and on a GPU for arrays that lie
on the host, every launch takes the public path.

A kernel is compiled for each session (settings in a program of the compiler) in which it is launched. The compiled
code stays valid when the settings change; it ends with its program.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, overload

import numpy as np

from ..errors import InputError
from ..mode import switch
from . import runtime
from .arguments import ArrayParameter, Parameter, parameter
from .compilation import counted
from .counters import counters
from .device_variant import DeviceVariant, are_on_device, as_given
from .flattened import flatten
from .memory import Held, Memory
from .records import RecordType, leaves
from .staging import launch as launch_staged
from .staging import needs_packing
from .variant import Variant, compiling, home, make_kernel, program_of, started_twice
from .writes import writes_of

ti = runtime.ti

_QUADRANTS = runtime.compiler == "quadrants"


class Kernel:
    """A kernel of the compiler behind checks of count, dtype, shape of elements, contiguity and writability.

    Arguments are NumPy arrays, Tensors (a written Tensor's version is raised), numbers, records of these (records.py),
    and arrays of the compiler (`ti.ndarray`: these have no version, and are launched by the public call). Lengths are
    not compared.

    A kernel that is made after `runtime.init` belongs to the precision then in force, as its types may depend on it. In
    another precision a call raises. Launches by `bind` keep the settings in which they were bound.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        reduced: bool = False,
        wide: bool = False,
        alike: bool = False,
        exact: bool = False,
        graph: bool = False,
        block: bool = False,
        written: frozenset[str] | None = None,
    ) -> None:
        """With `reduced`, `wide` or `exact`, it is compiled so, see `compiling`; with `alike`, alike for any threads.

        On the CPU, a wide kernel takes arrays of vectors that begin at a multiple of the vector's size, as those of
        `aligned_zeros` do, and in NumPy's memory only. Its vectors have 2, 4, 8, ... numbers. With `graph`, CUDA is
        given its loops as one graph where the compiler is Quadrants, and its arrays lie on the device. With
        `block`, threads of a block wait for each other in loops, and read there what others wrote.
        A loop that is compiled for one thread may round differently from one that is compiled for several. `written`
        names the parameters that the kernel writes; by default they are read from its source, which takes long.
        """
        source = _source(function)
        self.reduced, self._wide, self._alike, self.exact = reduced, wide, alike, exact
        self._graph, self._block = graph, block
        self.name = source.__name__
        signature = inspect.signature(source)
        self.parameters = list(signature.parameters)
        self.kinds = {name: described.annotation for name, described in signature.parameters.items()}
        self._records = [
            (kind if isinstance(kind, RecordType) else None, f"kernel {self.name}, argument {name}")
            for name, kind in self.kinds.items()
        ]
        self._has_records = any(record is not None for record, _ in self._records)
        self.written = _written(self.name, source, self.kinds) if written is None else written
        self.arguments: list[Parameter] = []
        for name, kind in self.kinds.items():
            record = kind.name if isinstance(kind, RecordType) else None
            for leaf, inner in leaves(name, kind) if isinstance(kind, RecordType) else [(name, kind)]:
                is_written = leaf in self.written
                self.arguments.append(parameter(self.name, leaf, inner, written=is_written, record=record, wide=wide))
        if signature.return_annotation not in (inspect.Signature.empty, None):
            remedy = "Write the result to an array of one element."
            raise InputError(f"kernel {self.name}", "it returns nothing", repr(signature.return_annotation), remedy)
        self.source, self._given = source, function if source is not function else None
        self._precision = runtime.settings().precision if runtime.initialised() else None
        self._compiled: dict[runtime.Session, Any] = {}  # by the compiler's decorator
        self._packed: dict[Any, Any] = {}  # likewise, by session and packed arrays
        self._written_positions = [i for i, a in enumerate(self.arguments) if a.is_array and a.name in self.written]
        self._open_positions = [i for i, a in enumerate(self.arguments) if isinstance(a, ArrayParameter) and a.is_open]
        self._variants: dict[Any, Variant] = {}
        self._session: runtime.Session | None = None  # of the last launch
        self._variant: Variant | None = None  # its only one there, when the annotations leave nothing open
        self._public = False

    @property
    def may_be_joined(self) -> bool:
        """True if another kernel may have its loops, see calls.py."""
        return not (self._has_records or self._block or self._open_positions)

    @property
    def text(self) -> str:
        """Source text that is compiled."""
        return textwrap.dedent(inspect.getsource(self.source))

    def __call__(self, *arguments: Any) -> None:
        """Launch. Errors: InputError for an argument that the kernel does not take; nothing is written then."""
        if self._has_records:
            arguments = self._flatten(arguments)
        if switch.enabled:
            self._refuse_unrecorded(arguments)
        if len(arguments) != len(self.arguments):
            raise self._count(len(arguments), self.parameters)
        variant = self._variant if self._session is switch.session else None
        if variant is None:
            variant = self._choose(arguments)
        if variant is None:
            return self._launch_publicly(arguments)
        for put, value in zip(variant.puts, arguments, strict=True):
            if not put(value):
                return self._launch_publicly(arguments)
        for position in self._written_positions:
            written = arguments[position]
            if isinstance(written, Memory):
                written.raise_version()
        variant.launch(variant.context)

    def bind(self, *arguments: Any) -> Callable[..., None]:
        """A launch with these arguments, checked once and repeated later: 1.4 us, with quadrants 0.4.

        Trailing scalars may be left open: `bound = kernel.bind(x, y)`, then `bound(3)`.
        """
        whole, given = arguments, len(arguments)
        if self._has_records and given <= len(self.parameters):
            arguments = self._flatten(arguments, given)
        if switch.enabled:
            self._refuse_unrecorded(arguments)
        first = len(arguments)
        names, rest = self.parameters[given:], self.arguments[first:]
        if first > len(self.arguments) or any(a.is_array for a in rest):
            raise self._count(given, self.parameters)
        values = self._check(arguments)
        variant = self._choose(arguments)
        session = runtime.session()
        if variant is None:
            return lambda *rest: self._call_in(session, (*whole, *rest))
        bound = variant
        context, puts = bound.bound_context(arguments, values)
        places = [i for i in self._written_positions if i < first]
        written = [arguments[i] for i in places if isinstance(arguments[i], Memory)]
        memory = Held(values, [arguments[i] for i in places if not isinstance(arguments[i], Memory)])

        def launch_bound(*scalars: float, keep_alive: Held = memory) -> None:
            nonlocal bound, context, puts
            if bound.ended:
                bound = self._variant_in(session, arguments)
                context, puts = bound.bound_context(arguments, values)
            if scalars or puts:
                if len(scalars) != len(puts):
                    raise self._count(len(scalars), names)
                for put, scalar in zip(puts, scalars, strict=True):
                    put(scalar)
            for tensor in written:
                tensor.raise_version()
            bound.launch(context)

        return launch_bound

    def _variant_in(self, session: runtime.Session, arguments: tuple[Any, ...]) -> Variant:
        """The variant for the settings of a session whose program has ended."""
        with runtime.within(session, f"kernel {self.name}"):
            variant = self._choose(arguments)
        assert variant is not None, "only launches with a variant are bound"
        return variant

    def _call_in(self, session: runtime.Session, arguments: tuple[Any, ...]) -> None:
        """Launch under the settings of a session."""
        if session is switch.session:
            return self(*arguments)
        with runtime.within(session, f"kernel {self.name}"):
            self(*arguments)

    def _flatten(self, arguments: tuple[Any, ...], count: int | None = None) -> tuple[Any, ...]:
        """The fields of records in place of these. Errors: InputError for other fields, or another number."""
        if len(arguments) != (len(self.parameters) if count is None else count):
            raise self._count(len(arguments), self.parameters)
        flat: list[Any] = []
        for (record, source), value in zip(self._records, arguments, strict=False):
            if record is None:
                flat.append(value)
            else:
                flat += record.flatten(source, value)
        return tuple(flat)

    def _launch_publicly(self, arguments: tuple[Any, ...]) -> None:
        """Launch by the compiler's own call."""
        values = self._check(arguments)
        for position in self._written_positions:
            if isinstance(arguments[position], Memory):
                arguments[position].raise_version()
        with self._optimization():
            if runtime.settings().on_gpu:
                counters.launches += 1
                return launch_staged(self.name, self.arguments, values, self._kernel_with)
            self._kernel_of(runtime.session())(*[as_given(value, on_gpu=False) for value in values])

    def _check(self, arguments: tuple[Any, ...]) -> list[Any]:
        return [argument.check(value) for argument, value in zip(self.arguments, arguments, strict=False)]

    def _takes_fast_way(self, values: list[Any]) -> bool:
        """True if all arrays lie where the kernel runs, and are not the compiler's own."""
        if runtime.settings().on_gpu:
            return are_on_device(values) and not needs_packing(self.arguments)
        pairs = zip(self.arguments, values, strict=False)
        return all([isinstance(value, np.ndarray) for argument, value in pairs if argument.is_array])

    def _refuse_unrecorded(self, arguments: tuple[Any, ...]) -> None:
        """Raise if operations are recorded, which a launch is not, and an argument carries a gradient."""
        for argument, value in zip(self.arguments, arguments, strict=False):
            if isinstance(value, Memory) and value.requires_grad:
                if argument.name not in self.written:
                    constraint = "a launch outside a Function gives no gradient"
                    remedy = "Launch it in the forward of a Function, or pass detach()."
                    raise argument.error(constraint, f"a tensor that requires one, {value!r}", remedy)
                if value.grad_fn is not None:
                    constraint = "a computed tensor is not written in place"
                    remedy = "Write to detach().clone(), or launch inside no_grad()."
                    raise argument.error(constraint, repr(value), remedy)

    def _count(self, found: int, names: list[str]) -> InputError:
        source = f"kernel {self.name}"
        return InputError(source, f"it takes {len(names)} arguments", f"{found}", f"Pass {', '.join(names) or 'none'}.")

    def _choose(self, arguments: tuple[Any, ...]) -> Variant | None:
        """The variant for these arguments, compiled at first use; None if launches take the public path."""
        runtime.refuse_fork()
        if not runtime.initialised() and program_of(home()) is not None:
            raise started_twice(self.name)
        session = runtime.session()
        if session is not self._session:
            self._enter(session)
        if self._public:
            return None
        values = self._check(arguments)
        if not self._takes_fast_way(values):
            return None
        runtime.require_thread(f"kernel {self.name}")
        key = (session, *[(values[i].dtype, values[i].ndim) for i in self._open_positions])
        if key not in self._variants:
            made: Any = Variant
            if session.settings.on_gpu:
                made = partial(DeviceVariant, graph=self._graph)
            try:
                with counted(), self._optimization():
                    self._variants[key] = made(
                        self.name, self._kernel_of(session), self.arguments, values, alike=self._alike
                    )
            except AttributeError:  # another release, without these interfaces
                self._public = True
                return None
        if not self._open_positions:
            self._variant = self._variants[key]
        return self._variants[key]

    def _optimization(self) -> AbstractContextManager[None]:
        """Return the context in which the kernel compiles."""
        wide = self._wide and not runtime.settings().on_gpu
        return compiling(reduced=self.reduced, wide=wide, exact=self.exact, block=self._block)

    def _enter(self, session: runtime.Session) -> None:
        """Switch to another session. Errors: InputError in another precision than the kernel's own."""
        if self._precision not in (None, session.settings.precision):
            remedy = f"Make it again, by its factory, or call runtime.init(precision={self._precision!r}, ...) before."
            constraint = f"it was made in precision {self._precision}, and belongs to it"
            raise InputError(f"kernel {self.name}", constraint, f"{session.settings} in force", remedy)
        if self._session is None or session.program != self._session.program:
            self._variants.clear()
            self._compiled.clear()
            self._packed.clear()
        self._session, self._variant = session, None

    def _kernel_with(self, groups: dict[str, int]) -> Any:
        """The compiler's own kernel, with the arrays of these groups as parts of others, for the session in force."""
        if not groups:
            return self._kernel_of(runtime.session())
        key = runtime.session(), tuple(groups.items())
        if key not in self._packed:
            self._packed[key] = make_kernel(flatten(self.source, self.kinds, groups))
        return self._packed[key]

    def _kernel_of(self, session: runtime.Session) -> Any:
        """The compiler's own kernel: one for each session, as it compiles for types of arguments only."""
        if session not in self._compiled:
            if self._given is None:
                source = flatten(self.source, self.kinds) if self._has_records else self.source
                self._given = make_kernel(source)
            self._compiled[session], self._given = self._given, None
        return self._compiled[session]


@overload
def kernel(function: Callable[..., Any]) -> Kernel: ...
@overload
def kernel(*, reduced: bool = ..., wide: bool = ...) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(function: Callable[..., Any] | None = None, *, reduced: bool = False, wide: bool = False) -> Any:
    """Make a `Kernel` of a function (as a decorator, with or without options), or of a kernel made by @ti.kernel."""
    make = partial(Kernel, reduced=reduced, wide=wide)
    return make if function is None else make(function)


def _source(function: Any) -> Callable[..., Any]:
    """The Python function itself, or the function inside a kernel made by the compiler's decorator."""
    if getattr(function, "_is_wrapped_kernel", False):
        name = function.__name__
        made_by = type(function._primal).__module__.partition(".")[0]
        if made_by != runtime.compiler:
            remedy = "Import ti from simphys.autograd.kernels.runtime; SIMPHYS_COMPILER chooses the compiler."
            raise InputError(f"kernel {name}", f"the compiler of this process is {runtime.compiler}", made_by, remedy)
        if function._is_classkernel:
            remedy = "Move it out of the class, and pass the attributes of `self` that it uses."
            raise InputError(f"kernel {name}", "a kernel is a function", "a method", remedy)
        return function.__wrapped__
    if not inspect.isfunction(function):
        raise InputError("kernel", "it takes a function or a ti.kernel", repr(function), "Write @kernel above a def.")
    return function


def _written(name: str, source: Callable[..., Any], kinds: dict[str, Any]) -> frozenset[str]:
    """The parameters that the kernel writes. Errors: InputError if it writes to anything else."""
    try:
        writes = writes_of(source, {name: kind for name, kind in kinds.items() if isinstance(kind, RecordType)})
    except OSError:
        remedy = "Put it into a file."
        raise InputError(f"kernel {name}", "its source is in a file", "none", remedy) from None
    if writes.captured:
        remedy = "Pass it as an argument: a captured field has no version to show backward the change."
        raise InputError(
            f"kernel {name}", "it writes to its arguments only", ", ".join(sorted(writes.captured)), remedy
        )
    return writes.parameters
