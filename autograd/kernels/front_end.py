"""Less work in the Python part of both compilers, which took up to three quarters of the time to compile.

For each place where a ti.func is inlined, Taichi 1.7.4 and Quadrants 1.3.3 read, tokenize and dedent its source anew.
For each expression they wrap the line to 80 columns, for a message that is hardly ever shown. Here they get the same
from memory. Quadrants also rewrites each tree for fields of dataclasses, and walks through each kernel twice, to find
which of these are used: our kernels have none. The compiled code and the messages stay the same.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, MutableMapping
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, WeakSet


def hasten(ti: Any) -> None:
    """Spare the front end of a compiler work that it repeats; no change if a release differs."""
    if ti.__name__ == "quadrants":
        _hasten_quadrants(ti)
    else:
        _hasten_taichi(ti)


def skip_discovery(primal: Any) -> None:
    """Let Quadrants walk through a kernel once; the first of two walks finds out which fields of dataclasses it uses.

    It is skipped when a cache knows that already, as here: none, since the kernel takes no dataclasses. Where
    `primal.stored` is a compiled kernel, the other one reads only the parameters.
    """
    primal.stored = None
    look_up = getattr(primal, "_try_load_fastcache", None)
    if look_up is None:
        return

    def none_used(arguments: Any, key: Any) -> set[str]:
        found: set[str] | None = look_up(arguments, key)
        if found is None:
            found = primal.used_py_dataclass_parameters_by_key_enforcing[key] = set()
        if primal.stored is not None:
            primal.compiled_kernel_data_by_key[key] = primal.stored
        return found

    primal._try_load_fastcache = none_used


def _hasten_quadrants(ti: Any) -> None:
    try:
        base, positions, records = (
            ti.lang._func_base, ti.lang.ast.ast_transformer_utils, ti.lang._kernel_impl_dataclass
        )  # fmt: skip
        read, rewrite = base.get_source_info_and_src, records.unpack_ast_struct_expressions
        known = base.textwrap is textwrap and positions.TextWrapper is textwrap.TextWrapper
    except AttributeError:
        return
    if not known:
        return

    def rewrite_if_needed(tree: Any, struct_locals: set[str]) -> Any:
        return rewrite(tree, struct_locals) if struct_locals else tree

    base.get_source_info_and_src = _by_function(read)
    base.textwrap = SimpleNamespace(fill=_fill, dedent=_dedent)
    positions.TextWrapper = _Wrapper
    records.unpack_ast_struct_expressions = rewrite_if_needed


def _hasten_taichi(ti: Any) -> None:
    try:
        kernels, positions = ti.lang.kernel_impl, ti.lang.ast.ast_transformer_utils
        readers = {name: _by_function(getattr(kernels, name)) for name in ("getsourcelines", "getsourcefile")}
        known = kernels.textwrap is textwrap and positions.TextWrapper is textwrap.TextWrapper
    except AttributeError:
        return
    if not known:
        return
    for name, reader in readers.items():
        setattr(kernels, name, reader)
    kernels.textwrap = SimpleNamespace(fill=_fill, dedent=_dedent)
    positions.TextWrapper = _Wrapper


def live_arrays(ti: Any) -> WeakSet[Any]:
    """The set of all ti.ndarray that are made from now on, while they live."""
    made: WeakSet[Any] = WeakSet()
    start = ti.lang._ndarray.Ndarray.__init__

    @functools.wraps(start)
    def remembered(self: Any) -> None:
        start(self)
        made.add(self)

    ti.lang._ndarray.Ndarray.__init__ = remembered
    return made


def _by_function(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Cache `read` by function."""
    known: MutableMapping[Any, Any] = WeakKeyDictionary()

    def remembered(function: Any) -> Any:
        if function not in known:
            known[function] = read(function)
        return known[function]

    return remembered


_fill = functools.lru_cache(1 << 14)(textwrap.fill)
_dedent = functools.lru_cache(1 << 10)(textwrap.dedent)


class _Wrapper:
    """A TextWrapper that remembers lines; Taichi makes one for each expression."""

    def __init__(self, width: int) -> None:
        self.width = width

    def wrap(self, text: str) -> list[str]:
        return _wrapped(text, self.width)


@functools.lru_cache(1 << 14)
def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width)
