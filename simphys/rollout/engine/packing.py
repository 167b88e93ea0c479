"""Arguments of kernels on a GPU: integers share an array, and so do inputs and index arrays if a driver binds few."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.staging import ARCHS, BINDINGS
from simphys.simulator import Array
from simphys.substep.expressions import element_name
from simphys.substep.text import replace_names

from .arrays import to_device
from .memory import ARRAY, Layout

INTEGERS = "packed_integers"
"""Array of all integers but those that change from launch to launch."""

_ENTRY = re.compile(r"(\w+)(\[|, )")
"""Array with what its index follows: that of an entry, or the start of a `Region`."""


@dataclass(frozen=True)
class Packing:
    """Arguments that are parts of others."""

    integers: tuple[str, ...] = ()
    """Names of the integers in the array INTEGERS, in order."""
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the inputs in each shared array, in order, by its name; an input that is in none has its own array."""

    def bring(self, known: dict[str, Any], inputs: Mapping[str, Array]) -> None:
        """Make the shared arrays from inputs [elements, *element], and add them to the known arguments."""
        for name, members in self.inputs.items():
            lengths = [len(inputs[member]) for member in members]
            starts = itertools.accumulate(lengths[:-1], initial=0)
            known |= {f"start_{m}": start for m, start in zip(members, starts, strict=True)}
            together, element = np.concatenate([inputs[m] for m in members]), inputs[members[0]].shape[1:]
            brought = device.to_device(together) if together.dtype.kind == "i" else to_device(together, element)
            known[name.removeprefix(ARRAY)] = brought
        if self.integers:
            known[INTEGERS] = device.to_device(np.array([known[name] for name in self.integers], np.int32))


def pack(
    body: list[str],
    parameters: Mapping[str, str],
    layout: Layout,
    inputs: Collection[str],
    relations: Collection[str],
) -> tuple[list[str], dict[str, str], Packing]:
    """Rewrite a kernel for a GPU. `inputs` and `relations`, those of the model, are the arrays that kernels only read.

    Returns the text, the parameters and the packing. An input that shares an array begins at the integer start_<name>.
    """
    shared: dict[str, list[str]] = {}
    kept: dict[str, str] = {}
    bound = sum([kind != "i32" for kind in parameters.values()]) + 1
    if bound <= BINDINGS or runtime.settings().arch not in ARCHS:
        inputs = relations = ()
    words: dict[str, str] = {}
    for name, kind in parameters.items():
        array = name.removeprefix(ARRAY)
        if kind == "i32":
            continue
        if name.startswith(ARRAY) and array in inputs:
            shared.setdefault(f"{ARRAY}inputs_{element_name(layout.elements[array])}", []).append(array)
            words[array] = name
        elif name in relations and kind in ("ints", "array_real"):
            shared.setdefault(f"{ARRAY}relations_{kind.removeprefix('array_')}", []).append(name)
            words[name] = name
        else:
            kept[name] = kind
    groups = {name: tuple(arrays) for name, arrays in shared.items()}
    starts = [f"start_{array}" for arrays in groups.values() for array in arrays]
    integers = (*[name for name, kind in parameters.items() if kind == "i32"], *starts)
    homes = {words[array]: (name, f"start_{array}") for name, members in groups.items() for array in members}

    def shift(entry: re.Match[str]) -> str:
        array, start = homes.get(entry[1], ("", ""))
        return f"{array}{entry[2]}{start} + " if array else entry[0]

    text = [_ENTRY.sub(shift, line) for line in body]
    text = replace_names(text, {name: f"{INTEGERS}[{number}]" for number, name in enumerate(integers)})
    kinds = {name: name.removeprefix(f"{ARRAY}inputs_").removeprefix(f"{ARRAY}relations_") for name in groups}
    together = {name: kind if kind == "ints" else f"array_{kind}" for name, kind in kinds.items()}
    together |= {INTEGERS: "ints"} if integers else {}
    return text, {**together, **kept}, Packing(integers, groups)
