"""Launches on a GPU whose arguments are set once: which contexts may be launched again depends on the driver.

On CUDA and AMD a launch puts an address of the device where its context had the arguments, and a second launch of that
context would write there: it is *spent*. Vulkan and Metal leave a context as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from . import runtime
from .counters import counters
from .device import DeviceArray
from .variant import Variant, home

Mode = Literal["reuse", "copy", "fresh"]
"""Launch one context again and again; a copy of it each time; or a new one, whose arguments are set again."""

MODES: dict[tuple[str, str], Mode] = {
    ("taichi", "vulkan"): "reuse",
    ("taichi", "metal"): "reuse",
    ("quadrants", "vulkan"): "reuse",
    ("quadrants", "metal"): "reuse",
    ("quadrants", "cuda"): "copy",
    ("taichi", "cuda"): "fresh",
}
"""The fastest mode that is sound, by compiler and arch."""


def mode() -> Mode:
    """Return the mode of launches under the settings in force."""
    return MODES[runtime.compiler, runtime.settings().arch]


class Template:
    """Arguments that were put into it as into a launch context, to put them into new contexts."""

    def __init__(self) -> None:
        self._calls: dict[Any, tuple[str, tuple[Any, ...]]] = {}

    def set_arg_ndarray(self, index: Any, *values: Any) -> None:
        self._calls[index] = "set_arg_ndarray", values

    def set_arg_external_array_with_shape(self, index: Any, *values: Any) -> None:
        self._calls[index] = "set_arg_external_array_with_shape", values

    def set_arg_int(self, index: Any, *values: Any) -> None:
        self._calls[index] = "set_arg_int", values

    def set_arg_float(self, index: Any, *values: Any) -> None:
        self._calls[index] = "set_arg_float", values

    def put_into(self, context: Any) -> None:
        """Set all of it in a launch context."""
        for index, (name, values) in self._calls.items():
            getattr(context, name)(index, *values)


class DeviceVariant(Variant):
    """A kernel compiled for arrays of the device, with a context that is launched in the mode that is sound there."""

    _tasks: int | None = None
    """Loops that a launch runs on the device, counted at the first one."""

    def __init__(self, *given: Any, graph: bool = False, **options: Any) -> None:
        self._mode = mode()
        self._graph = graph and (runtime.compiler, runtime.settings().arch) == ("quadrants", "cuda")
        super().__init__(*given, **options)

    def _make_context(self) -> Any:
        return Template() if self._mode == "fresh" else super()._make_context()

    def launch(self, context: Any) -> None:
        self._require_program()
        if self._mode != "reuse":
            given, context = context, super()._make_context()
            if self._mode == "copy":
                context.copy(given)
            else:
                given.put_into(context)
        if self._graph:
            context.use_graph = True
        self.launch_context(context)
        counters.launches += 1
        if self._tasks is None:
            self._tasks = count_tasks()
        counters.tasks += self._tasks

    def launch_context(self, context: Any) -> None:
        """Launch a context as it is, which spends it on some drivers."""
        self._launch_kernel(self._compiled, context)


def count_tasks() -> int:
    """Count the loops that the last launch ran on the device; 0 with taichi, which does not tell."""
    ask = getattr(home().prog, "get_num_offloaded_tasks_on_last_call", None)
    return 0 if ask is None else int(ask())


def are_on_device(values: Sequence[Any]) -> bool:
    """True if all arrays among these checked arguments are arrays of the device, and there are some."""
    kinds = {type(value) for value in values} - {int, float}
    return kinds == {DeviceArray}


def as_given(value: Any, *, on_gpu: bool) -> Any:
    """Return an argument as the compiler's own call takes it; on a GPU, count what goes there."""
    if isinstance(value, DeviceArray):
        return value.own
    if on_gpu and isinstance(value, np.ndarray):
        counters.upload(value.nbytes)
    return value
