"""Kernels of generated text, where an error of the compiler is one of a function that the text calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..errors import InputError
from . import runtime
from .launch import Kernel

_PLACE = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<name>\w+):')
"""Place of code in a message of the compiler; names of generated texts begin with <."""


class GeneratedKernel(Kernel):
    """A kernel of generated text."""

    def _optimization(self) -> AbstractContextManager[None]:
        return _explaining(super()._optimization(), self.name)


@contextmanager
def _explaining(inner: AbstractContextManager[None], kernel: str) -> Iterator[None]:
    """Raise InputError, in place of an error of the compiler, with the place of the code that it refuses."""
    refused: Any = getattr(runtime.ti, f"{runtime.compiler.capitalize()}CompilationError")
    try:
        with inner:
            yield
    except refused as error:
        places = list(_PLACE.finditer(str(error)))
        place = next((each for each in places if not each["file"].startswith("<")), None)
        source = f"{place['file']}:{place['line']}, {place['name']}" if place else f"kernel {kernel}"
        found = str(_innermost(error)).strip().splitlines()[-1]
        remedy = "Correct it, or the shapes of the arrays that it takes."
        raise InputError(source, "the compiler knows its operations", found, remedy) from error


def _innermost(error: BaseException) -> BaseException:
    """Follow an error to the one that it began with."""
    while (inner := error.__cause__ or error.__context__) is not None and str(inner).strip():
        error = inner
    return error
