"""Mutations of the tables of a scene and of the bytes of a file; a seed repeats each of them."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

Key = tuple[str | int, ...]

VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 2, 7, 1000, 10**6, 2**31 - 1, 2**31, 2**63 - 1, 2**64, 10**30, -(2**31) - 1, -(10**30)),
    *(0.0, -0.0, 0.5, -1.5, 1e-300, 5e-324, 1e-20, 1e10, 1e30, 1e308, -1e308, math.nan, math.inf, -math.inf),
    *(True, False, "", " ", "x", "none", "auto", "nan", "1e3", "ä€𝄞", "\0", "a\0b", "\n", "a" * 5000, "é" * 300),
    *("/", "..", ".", "~", "~nobody/x", "/dev/null", "/proc/self/mem", "no/such/file.npy", "loop", "folder"),
    *([], [[]], [0], [math.nan], [1.0, 2.0, 3.0], [[1.0], [2.0, 3.0]], [[0, 1]], ["x", 1], [None], {}, {"x": 1}),
)
"""Values that a person, or a script, might write by mistake. `loop` is a link to itself, `folder` a folder."""


def places(value: Any, key: Key = ()) -> Iterator[Key]:
    """Yield the keys of all values in nested tables and lists; of a long list those at the ends."""
    if key:
        yield key
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*key, name))
    elif isinstance(value, list):
        for index in {*range(min(len(value), 3)), *range(max(0, len(value) - 1), len(value))}:
            yield from places(value[index], (*key, index))


def mutate(scene: dict[str, Any], random: random.Random) -> tuple[dict[str, Any], str]:
    """Return the tables of a scene with one to three mutations, and what these are in words."""
    mutated, done = copy.deepcopy(scene), []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        key = random.choice(list(places(mutated)))
        change = random.choice(CHANGES)
        owner: Any = mutated
        for part in key[:-1]:
            owner = owner[part]
        change(owner, key[-1], random)
        done.append(f"{change.__name__[1:]} {'.'.join(map(str, key))}")
        if not mutated:
            break
    return mutated, ", ".join(done)


def vary(scene: dict[str, Any], random: random.Random) -> tuple[dict[str, Any], str]:
    """Return the tables of a scene with one to three numbers changed: most such scenes load."""
    varied, done = copy.deepcopy(scene), []
    for _ in range(random.choice((1, 1, 2, 3))):
        places_of_numbers = [key for key in places(varied) if type(_at(varied, key)) in (int, float)]
        key = random.choice(places_of_numbers)
        owner, value = _at(varied, key[:-1]), _at(varied, key)
        factor = random.choice((0.0, 0.1, 0.5, 0.9, 1.1, 2.0, 2.0, 3.0, 10.0, -1.0, 30.0, 1e3, 1e6))
        owner[key[-1]] = type(value)(value * factor)
        done.append(f"{'.'.join(map(str, key))} = {owner[key[-1]]:g}")
    return varied, ", ".join(done)


def _at(tables: Any, key: Key) -> Any:
    for part in key:
        tables = tables[part]
    return tables


def _replace(owner: Any, part: Any, random: random.Random) -> None:
    owner[part] = copy.deepcopy(random.choice(VALUES))


def _scale(owner: Any, part: Any, random: random.Random) -> None:
    value = owner[part]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _replace(owner, part, random)
    factor = random.choice((-1, 0.1, 10, 1000, 1e5, 1e-5, 1e12))
    owner[part] = int(value * factor) if isinstance(value, int) and math.isfinite(value * factor) else value * factor


def _remove(owner: Any, part: Any, _: random.Random) -> None:
    del owner[part]


def _rename(owner: Any, part: Any, random: random.Random) -> None:
    if isinstance(owner, dict):
        owner[random.choice((f"{part}x", str(part)[:-1], "", "ä", "\0", "name"))] = owner.pop(part)
    else:
        owner.insert(part, copy.deepcopy(owner[part]))


def _nest(owner: Any, part: Any, random: random.Random) -> None:
    owner[part] = random.choice(([owner[part]], {"value": owner[part]}, [[owner[part]]], [owner[part]] * 3))


def _unpack(owner: Any, part: Any, random: random.Random) -> None:
    value = owner[part]
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    owner[part] = random.choice(inner) if inner else None


def _resize(owner: Any, part: Any, random: random.Random) -> None:
    value = owner[part]
    if isinstance(value, list):
        owner[part] = random.choice((value[:-1], value[1:], value * 2, value * 50, [*value, value], value[::-1]))
    else:
        _replace(owner, part, random)


def _add(owner: Any, part: Any, random: random.Random) -> None:
    if isinstance(owner, dict):
        owner[random.choice(("extra", "size", "file", "count"))] = copy.deepcopy(random.choice(VALUES))
    else:
        owner.append(copy.deepcopy(random.choice(VALUES)))


CHANGES: tuple[Callable[[Any, Any, random.Random], None], ...] = (
    *(_replace, _replace, _replace, _scale, _scale, _remove, _rename, _nest, _unpack, _resize, _add),
)


def damage(content: bytes, random: random.Random) -> bytes:
    """Return the bytes of a file with a mutation: cut, flipped, doubled, replaced, emptied, or a number in place."""
    changed, size = bytearray(content), len(content)
    match random.randrange(6):
        case 0:
            return content[: random.randrange(size + 1)]
        case 1:
            for _ in range(random.choice((1, 1, 4, 64))):
                changed[random.randrange(size)] ^= 1 << random.randrange(8)
        case 2:
            begin = random.randrange(size)
            changed[begin:begin] = changed[begin : begin + random.choice((1, 10, 1000))]
        case 3:
            begin = random.randrange(size)
            changed[begin : begin + random.choice((1, 4, 512))] = random.randbytes(random.choice((0, 1, 8, 512)))
        case 4:
            begin = random.randrange(size)
            text = random.choice((b"nan", b"inf", b"1e999", b"-", b",", b"\n", b"\0", b"1_0", "ä".encode(), b"9" * 400))
            changed[begin : begin + random.choice((0, 1, 5))] = text
        case _:  # a size in a header, perhaps
            begin = random.randrange(max(1, min(size, 2048)))
            changed[begin : begin + 8] = random.choice((b"\xff" * 8, b"\x00" * 8, b"\xff\xff\xff\x7f" * 2))
    return bytes(changed)
