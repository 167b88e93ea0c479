"""Keys of a scene by their types: checks of those with marks against its sizes, and lists of files and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from simphys.scenefile.errors import dotted
from simphys.scenefile.section import EACH, NAME, Distinct, IndexOf, Key, Length, NotZero, Problem, SideOf, key_type
from simphys.scenefile.shared import check_index, check_length, check_side

SIZED = (Length, IndexOf, SideOf)
MARKS = (*SIZED, Distinct, NotZero)


def check_marks(
    kind: Any, value: Any, key: Key, sizes: Mapping[str, int], places: Mapping[str, Key]
) -> Iterator[Problem]:
    """Check a valid value of a marked type, and all that it holds.

    Args:
        sizes: those that are known, by name; marks with others are not checked.
        places: keys of the scene that give some of them, for messages.
    """
    if isinstance(value, BaseModel):
        for name, own in marked_keys(type(value)).items():
            yield from check_marks(own, getattr(value, name), (*key, name), sizes, places)
        return
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        for mark in parts[1:]:
            if isinstance(mark, SIZED) and mark.size in sizes:
                yield from _check_size(mark, value, key, sizes[mark.size], places.get(mark.size))
            elif isinstance(mark, Distinct) and isinstance(value, list) and len(set(value)) < len(value):
                yield Problem(key, "its numbers must differ from each other", value, "Name another, or drop it.")
            elif isinstance(mark, NotZero) and isinstance(value, list) and not any(value):
                yield Problem(key, "must be a direction", value, "Give a vector other than 0.")
        yield from check_marks(parts[0], value, key, sizes, places)
    elif origin in (Union, UnionType):
        for part in parts:
            yield from check_marks(part, value, key, sizes, places)
    elif origin is list and isinstance(value, list) and _has_marks(parts[0]):
        for place, each in enumerate(value):
            yield from check_marks(parts[0], each, (*key, place), sizes, places)
    elif origin is dict and isinstance(value, Mapping):
        for name, each in value.items():
            for part, inner in zip(parts, (name, each), strict=True):
                yield from check_marks(part, inner, (*key, name), sizes, places)


def list_keys(kind: Any, key: Key = ()) -> Iterator[tuple[Key, Any]]:
    """List the keys of a type and of all that it holds, with their types; EACH stands for elements."""
    if _is_section(kind):
        for name in kind.model_fields:
            yield from list_keys(key_type(kind, name), (*key, name))
        return
    yield key, kind
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (list, dict):
        yield from list_keys(parts[-1], (*key, EACH))
    for part in parts[:1] if origin is Annotated else parts if origin in (Union, UnionType) else ():
        yield from list_keys(part, key)


@cache
def file_keys(scene: type[BaseModel]) -> tuple[Key, ...]:
    """Return the keys of a scene that hold paths of input files, relative to the scene file: those called `file`."""
    return tuple(dict.fromkeys([key for key, _ in list_keys(scene) if key[-1] == "file"]))


@cache
def named_keys(scene: type[BaseModel]) -> tuple[Key, ...]:
    """Return the keys of a simulator's sections at which a body may be named, in place of its number."""
    marks = [(key, get_args(kind)) for key, kind in list_keys(scene) if get_origin(kind) is Annotated]
    return tuple([key for key, found in marks if NAME in found and any([isinstance(m, IndexOf) for m in found])])


@cache
def marked_keys(section: type[BaseModel]) -> dict[str, Any]:
    """Return the types of those keys of a section that have marks, or hold sections."""
    kinds = {name: key_type(section, name) for name in section.model_fields}
    return {name: kind for name, kind in kinds.items() if _has_marks(kind)}


def _has_marks(kind: Any) -> bool:
    if get_origin(kind) is Annotated:
        kind, *marks = get_args(kind)
        return any([isinstance(mark, MARKS) for mark in marks]) or _has_marks(kind)
    return _is_section(kind) or any([_has_marks(part) for part in get_args(kind)])


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, BaseModel)


def _check_size(
    mark: Length | IndexOf | SideOf, value: Any, key: Key, size: int, place: Key | None
) -> Iterator[Problem]:
    if isinstance(mark, SideOf):
        yield from check_side(key, value, size) if isinstance(value, str) else ()
    elif isinstance(mark, IndexOf):
        yield from check_index(key, value, _name_one(mark.size), size) if isinstance(value, int) else ()
    elif place is None:
        yield from check_length(key, value, size, _name_one(mark.size))
    else:
        axis = "axis " if mark.size == "dim" else ""
        yield from check_length(key, value, size, f"{axis}of {dotted(place)}")


def _name_one(size: str) -> str:
    """Name one of the things that a size counts."""
    return {"dim": "axis", "bodies": "body"}.get(size, size.removesuffix("s"))
