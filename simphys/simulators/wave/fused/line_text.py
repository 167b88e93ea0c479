"""Text that computes one block of a line, for a loop over lines; see `lines`.

It has two forms. By entry: a loop computes each entry of the block into a local vector. By vector: arrays are read in
whole vectors where these begin at blocks, that is, for neighbours along other axes than the line's. Loops compute only
sums and differences of neighbours in the line. With Taichi a step takes 1.3 times longer by entry, with Quadrants a
tenth longer by vector.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from simphys.substep.text import indent

from ..layout import BLOCK

SHIFT = BLOCK.bit_length() - 1
"""Bits of an index within a block."""
INDEX = 2**30 - 1
"""Mask for indices of blocks."""
STRIDE = 2**24 - 1
"""Mask for strides. Masks change no index, but prove that indices cannot overflow; only such loops are vectorized."""
ALONG, OWN = f"(stride & {STRIDE})", f"(own_stride & {STRIDE})"
"""Distances between neighbours along the axis of a layer, in the grid and in its slab."""

_PAIR = re.compile(r"\((\w+)\[\1_i \+ (\d+) \* ([^\]]+)\] ([+-]) \1\[\1_i - \2 \* \3\]\)")
_ENTRY = re.compile(r"\b(\w+)\[\1_i( [+-] [^\]]+)?\]")


def by_entry(
    names: Collection[str],
    body: Sequence[str],
    results: Mapping[str, str],
    profiles: Sequence[str],
    *,
    on_last_axis: bool,
) -> list[str]:
    """Write the computation and storage of the block `k` of a line; an array x begins at index x_0 of the line."""
    block = _block_begins(names)
    block += [f"{name}_t = vector_{BLOCK}(0.0)" for name in results]
    entry = [f"{name}_i = {name}_b + n" for name in names]
    along = _along() if on_last_axis else "first"
    # a line across the axis lies inside
    entry += [f"{n}_n = {f'{n}[{along}]' if n != 'mask' or on_last_axis else '1.0'}" for n in profiles]
    entry += [*body, *[f"{name}_t[n] = {expression}" for name, expression in results.items()]]
    block += [f"for n in range({BLOCK}):", *indent(entry)]
    return [*block, *[f"{name}_blocks[{name}_b >> {SHIFT}] = {name}_t" for name in results]]


def by_vector(
    names: Collection[str],
    body: Sequence[str],
    results: Mapping[str, str],
    profiles: Sequence[str],
    *,
    on_last_axis: bool,
) -> list[str]:
    """Write the same by vectors."""
    loads: dict[str, str] = {}
    """Names of local vectors, with the expression of an entry or, in blocks, of the vector."""

    def local(expression: str) -> str:
        return loads.setdefault(expression, f"v_{len(loads)}")

    def pair(match: re.Match[str]) -> str:
        name, count, stride, sign = match.groups()
        if stride != "1" and not (on_last_axis and stride in (ALONG, OWN)):
            return match[0]
        return local(f"{name}[{name}_b + n + {count}] {sign} {name}[{name}_b + n - {count}]")

    def vector(match: re.Match[str]) -> str:
        name, shift = match.groups()
        return local(f"{name}_blocks[({name}_b{shift or ''}) >> {SHIFT}]")

    def write(text: str) -> str:
        return _ENTRY.sub(vector, _PAIR.sub(pair, text))

    lines = [write(line) for line in body]
    stores = [f"{name}_blocks[{name}_b >> {SHIFT}] = {write(expression)}" for name, expression in results.items()]
    block = _block_begins(names)
    for name in profiles:
        if on_last_axis:
            block += _fill(f"{name}_n", f"{name}[{_along()}]")
        else:
            block.append(f"{name}_n = {f'{name}[first]' if name != 'mask' else '1.0'}")
    for expression, name in loads.items():
        block += [f"{name} = {expression}"] if "_blocks[" in expression else _fill(name, expression)
    return [*block, *lines, *stores]


def _block_begins(names: Collection[str]) -> list[str]:
    return [f"{name}_b = ({name}_0 + k * {BLOCK}) & {INDEX}" for name in names]


def _along() -> str:
    """Index of an entry along the line."""
    return f"((k * {BLOCK}) & {INDEX}) + n"


def _fill(name: str, entry: str) -> list[str]:
    return [f"{name} = vector_{BLOCK}(0.0)", f"for n in range({BLOCK}):", f"    {name}[n] = {entry}"]
