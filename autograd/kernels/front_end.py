"""A cache of the sources that Taichi reads while it compiles, which took up to half of the time to compile.

For each place where a ti.func is inlined, Taichi 1.7.4 reads, tokenizes and dedents its source anew. For each
expression it wraps the line to 80 columns, for a message that is hardly ever shown. Here it gets the same from memory:
the compiled code and the messages stay the same.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, MutableMapping
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary, WeakSet


def remember_sources(ti: Any) -> None:
    """Cache the functions that read and wrap sources in Taichi's front end; no change if a release differs."""
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
