"""Text of kernels: loops around the bodies that actions write, compiled like kernels in a file."""

from __future__ import annotations

import functools
import itertools
import linecache
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simphys.autograd.kernels.generated import GeneratedKernel
from simphys.autograd.kernels.launch import Kernel
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array, Shape

from .action import Slot
from .expressions import element_name, size_name
from .place import Offset, Place
from .program import WHOLE, Domain
from .schedule import Group
from .site import Site

SPREAD = 512
"""Iterations of a parallel loop that the compiler assigns to one CPU thread."""

LIGHT = 2048
"""Largest number of elements, each with little work, that a CPU thread computes faster than several threads begin."""

_numbers = itertools.count(1)


def indent(lines: Sequence[str], levels: int = 1) -> list[str]:
    """Indent lines."""
    return ["    " * levels + line for line in lines]


def write_body(group: Group, places: Mapping[Slot, Place], index: str, suffix: str = "", **where: Any) -> Site:
    """Write the body of a group's loop at one index; `where` it lies in a grid, as `Site` takes it."""
    return fill_body(Site(places, index, suffix, **where), group)


def fill_body(site: Site, group: Group) -> Site:
    """Write the body of a group's loop."""
    for action in group.actions:
        action.emit(site)
    site.flush()
    return site


def offset_lines(offsets: Mapping[str, Offset], lines: Iterable[str]) -> list[str]:
    """Write the offsets that some lines use, for a launch of one row."""
    named = find_names(lines)
    used = {name: offset for name, offset in offsets.items() if name in named}
    row = ["t = begin"] if any([offset.moves for offset in used.values()]) else []
    return [*row, *[f"{name} = {offset.write('t')}" for name, offset in used.items()]]


def spread_lines(size: str, name: str, body: Sequence[str], *, index: str = "z", period: int = SPREAD) -> list[str]:
    """Write a parallel loop in which each CPU thread takes one of so many tasks at a time, the number `name`."""
    head = [f"for {index} in range({size} * {period}):", f"    if {index} % {period} == 0:"]
    return [*head, f"        {name} = {index} // {period}", *indent(body, 2)]


def loop_lines(group: Group, places: Mapping[Slot, Place]) -> list[str]:
    """Write a group's loop as a part of a larger body, in order and in blocks of its width."""
    if group.domain == WHOLE:
        return ["for _ in range(1):", *indent(write_body(group, places, "0").body)]
    size, width = size_name(group.domain), group.width
    if goes_by_rows(group):
        return [f"for line in range({size} // {group.domain.grid[-1]}):", *indent(row_lines(group, places))]
    lines = []
    site = write_body(group, places, "i")
    if site.has_blocks:  # the lines of several elements interleave, those of loops not
        width = 1
    if width > 1:
        bodies = [write_body(group, places, f"(i + {r})" if r else "i", f"_{r}") for r in range(width)]
        lines += [f"for block in range({size} // {width}):", f"    i = {width} * block"]
        lines += indent([line for same in zip(*[body.compute for body in bodies], strict=True) for line in same])
        lines += indent([line for body in bodies for line in body.stores])
    begin = f"{size} // {width} * {width}, " if width > 1 else ""
    return [*lines, f"for i in range({begin}{size}):", *indent(site.body)]


def goes_by_rows(group: Group) -> bool:
    """True if a loop over the cells of a grid takes blocks within rows: its arrays hold numbers, not whole vectors."""
    return bool(group.domain.grid) and group.width > 1 and not any([slot.memory_element for slot in group.slots()])


def row_lines(group: Group, places: Mapping[Slot, Place]) -> list[str]:
    """Write a group's loop over a row of a grid, the number `line`: blocks within the row, then its ends and the rest.

    A block's results are held in local vectors first: a loop that stores nothing to arrays is vectorized.
    """
    columns, width, margin = group.domain.grid[-1], group.width, group.margin
    count = max(columns - 2 * margin, 0) // width
    lines, ends = [f"row = line * {columns}"], write_body(group, places, "i", line=("row", "column"))
    if count:
        inner = write_body(group, places, "i", row="row")
        assert len(inner.stores) == len(inner.results), "each cell writes to itself alone"
        held = {f"held_{number}": result for number, result in enumerate(inner.results)}
        lines += [f"for block in range({count}):", f"    first_of_block = row + {margin} + {width} * block"]
        lines += [f"    {name} = vector_{width}(0.0)" for name in held]
        loop = [f"for r in range({width}):", "    i = first_of_block + r"]
        kept = [f"    {name}[r] = {value}" for name, (_, value) in held.items()]
        lines += indent([*loop, *indent(inner.compute), *kept])
        lines += indent([*loop, *[f"    {entry} = {name}[r]" for name, (entry, _) in held.items()]])
    skip = width * count
    if skip:
        lines += [f"for left in range({columns - skip}):", f"    column = left + ti.min(left // {margin}, 1) * {skip}"]
    else:
        lines += [f"for column in range({columns}):"]
    lines += ["    i = row + column"]
    return [*lines, *indent(ends.body)]


def launch_lines(
    group: Group,
    places: Mapping[Slot, Place],
    offsets: Mapping[str, Offset],
    *,
    parallel: bool,
    batched: bool,
    cpu: bool,
) -> list[str]:
    """Write a group's loop as a loop of its own over all elements of all batch members."""
    size, index = ("1", "0") if group.domain == WHOLE else (size_name(group.domain), "i")
    rows = cpu and goes_by_rows(group)
    if rows:
        size, index, body = f"({size} // {group.domain.grid[-1]})", "line", row_lines(group, places)
    else:
        body = write_body(group, places, index).body
    if not batched:
        split = ["member = 0"] if group.domain == WHOLE else ["member = 0", f"{index} = y"]
    else:
        split = [f"member = y // {size}"] + ([] if group.domain == WHOLE else [f"{index} = y - member * {size}"])
    inner = [*split, *offset_lines(offsets, body), *body]
    total = f"members * {size}" if batched else size
    if group.in_order or (cpu and not batched and not group.heavy and group.domain.size <= LIGHT):
        parallel = False
    lines = [f"ti.loop_config(serialize={not parallel})"]
    if parallel and cpu and (group.heavy or rows):
        head = f"for y in range(({total}) * piece // pieces, ({total}) * (piece + 1) // pieces):"
        return [*lines, *spread_lines("pieces", "piece", [head, *indent(inner)])]
    return [*lines, f"for y in range({total}):", *indent(inner)]


def block_lines(group: Group, places: Mapping[Slot, Place], lanes: int) -> list[str]:
    """Write a group's loop for the threads of a block, each with its number `lane`; they wait for each other then."""
    whole = group.domain == WHOLE
    body = write_body(group, places, "0" if whole else "i").body
    size = size_name(group.domain)
    if whole:
        lines = ["if lane == 0:", *indent(body)]
    elif group.in_order:
        lines = ["if lane == 0:", f"    for i in range({size}):", *indent(body, 2)]
    else:
        turns = f"({size} + {lanes - 1} - lane) // {lanes}"
        lines = [f"for turn in range({turns}):", f"    i = {lanes} * turn + lane", *indent(body)]
    return [*lines, "ti.simt.block.sync()"]


_WORD = re.compile(r"\w+")


def find_names(lines: Iterable[str]) -> dict[str, None]:
    """Find the words of lines of text, all names that occur there: each once, in order."""
    return dict.fromkeys(_WORD.findall("\n".join(lines)))


def replace_names(lines: Iterable[str], changes: Mapping[str, Any]) -> list[str]:
    """Put other words in the place of some in lines of text."""
    return [_WORD.sub(lambda word: str(changes.get(word[0], word[0])), line) for line in lines]


def find_written(groups: Sequence[Group], places: Mapping[Slot, Place]) -> frozenset[str]:
    """Find the arrays that loops write."""
    return frozenset([places[slot].array for group in groups for slot in group.writes if slot in places])


def domains_of(groups: Sequence[Group]) -> list[Domain]:
    """List the index sets of loops, each once."""
    return list(dict.fromkeys([group.domain for group in groups if group.domain != WHOLE]))


def acts_on_whole(groups: Sequence[Group]) -> bool:
    """True if no loop goes over elements: all of them act on the system as a whole, and none goes over parts of it.

    Long ones decide for all.
    """
    if any([action.is_long for group in groups for action in group.actions]):
        return True
    return all([group.domain == WHOLE and not group.heavy for group in groups])


def keeps_order(groups: Sequence[Group]) -> bool:
    """True if the order of the terms of a sum matters."""
    return any([action.exact for group in groups for action in group.actions])


def index_type(array: Array) -> str:
    """Type of an index array, of a row of weights, or of numbers of the model, as a parameter of a kernel."""
    if array.dtype.kind == "f":
        return "array_real"
    return "ints" if array.ndim == 1 else "pairs"


def list_parameters(
    arrays: Mapping[str, Shape], relations: Mapping[str, Array], numbers: Iterable[str], integers: Iterable[str]
) -> dict[str, str]:
    """List the parameters of a kernel with their types: `arrays` by the shape of their elements, index arrays, ..."""
    return {
        **{name: f"array_{element_name(element)}" for name, element in arrays.items()},
        **{name: index_type(array) for name, array in relations.items()},
        **dict.fromkeys(numbers, "real"),
        **dict.fromkeys(integers, "i32"),
    }


def group_options(groups: Sequence[Group]) -> dict[str, bool]:
    """Choose how a kernel of these loops is compiled, see `make_kernel`."""
    return {"reduced": acts_on_whole(groups), "exact": keeps_order(groups)}


def make_kernel(
    name: str,
    parameters: Mapping[str, str],
    body: Sequence[str],
    functions: Mapping[str, Any],
    real: Any,
    written: frozenset[str],
    **options: bool,
) -> Kernel:
    """Compile a kernel from text. `parameters` has their types: array_real, array_vector_2, ints, pairs, real, i32.

    `written` names the arrays that it writes.

    Options: with `reduced`, it compiles in less time: for bodies that are long and hold no loops over elements. With
    `wide`, it loads and stores whole vectors, in aligned arrays. With `alike`, it is compiled alike for any number of
    threads. With `exact`, sums keep the order of their terms. With `graph`, CUDA launches its loops as one graph. With
    `block`, threads wait for each other in loops.
    """
    listed = ", ".join([f"{parameter}: {kind}" for parameter, kind in parameters.items()])
    text = "\n".join([f"def {name}({listed}):", *indent(body or ["pass"])]) + "\n"
    called, chosen = (tuple(sorted(each.items())) for each in (functions, options))
    return _compile(name, text, called, real, written.intersection(parameters), chosen)


@functools.lru_cache(maxsize=512)
def _compile(
    name: str,
    text: str,
    functions: tuple[tuple[str, Any], ...],
    real: Any,
    written: frozenset[str],
    options: tuple[tuple[str, bool], ...],
) -> Kernel:
    space: dict[str, Any] = {"ti": ti, "i32": ti.i32, **dict(functions)}
    space["ints"] = ti.types.ndarray(dtype=ti.i32, ndim=1)
    space["pairs"] = ti.types.ndarray(dtype=ti.types.vector(2, ti.i32), ndim=1)
    for word in {"real", *re.findall(r"\b(?:real|vector|matrix)(?:_\d+)*\b", text)}:
        space[word] = _element_type(word, real)
    for word in re.findall(r"\barray_((?:real|vector|matrix)(?:_\d+)*)\b", text):
        space[f"array_{word}"] = ti.types.ndarray(dtype=_element_type(word, real), ndim=1)
    file = f"<simphys {name} {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), space)
    return GeneratedKernel(space[name], **dict(options), written=written)


def _element_type(name: str, real: Any) -> Any:
    """Type of an element by its name, such as vector_2."""
    kind, *shape = name.split("_")
    lengths = [int(length) for length in shape]
    return {"real": lambda: real, "vector": ti.types.vector, "matrix": ti.types.matrix}[kind](
        *lengths, *[real] * bool(shape)
    )
