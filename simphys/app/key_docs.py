"""Meaning of the keys of a scene file: type, default, bounds, and the description of their section."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo

from simphys.autograd.errors import InputError
from simphys.scenefile.section import LARGEST, Problem
from simphys.scenefile.simulators import find_config, known_names
from simphys.scenefile.validate import did_you_mean

BOUNDS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "min_length": "length >=", "max_length": "length <="}

SECTIONS = ("section", "list of section", "table of section")

SYMBOL = r"(?:m|s|kg|rad|K|deg C|N|Pa|J|W|Hz|C|px|cells|bytes)(?:\^\d)?"
UNIT = rf"\[(1|(?:1/)?{SYMBOL}(?:[ /]| or |1/|[()]|{SYMBOL})*|[^\[\]]*\bunit\s+of\b[^\[\]]*)\]"
"""Unit in brackets, such as [kg m^2], [W/(m K)] or [unit of the field], and [1] of what has no dimension; other
brackets, such as those of shapes, are none."""


@dataclass(frozen=True)
class KeyDoc:
    """One key: its path such as `time.dt`, and what it may hold."""

    path: str
    simulators: tuple[str, ...]
    """Simulators whose scenes have it."""
    kind: str
    default: str
    bounds: str
    section: str
    """Description of its section, with units."""

    @property
    def unit(self) -> str:
        """The unit that the description of its section gives it, "1" without a dimension; empty for what is no
        quantity: a text, a switch, an index, a count."""
        if "number" not in self.kind:
            return ""
        name = self.path.rpartition(".")[2].replace("_", "[_ ]")
        between = r"[^.,;:\[\]]*"
        for begin in (rf"(?:^|[.;] |\n)(?i:{name}): ", rf"(?<!\w)(?i:{name}s?)\b"):
            if found := re.search(f"{begin}{between}{UNIT}(?: or {UNIT})?", self.section):
                return " ".join(" or ".join(filter(None, found.groups())).split())
        return ""


def list_keys() -> list[KeyDoc]:
    """List all keys of all simulators; one that several have alike is one."""
    merged: dict[tuple[str, str, str], KeyDoc] = {}
    for name in known_names():
        config = find_config(name)
        if isinstance(config, Problem):
            continue
        for doc in _walk(config, "", name, inspect.getdoc(config) or ""):
            key = (doc.path, doc.kind, doc.section)
            others = merged[key].simulators if key in merged else ()
            merged[key] = KeyDoc(doc.path, (*others, name), doc.kind, doc.default, doc.bounds, doc.section)
    return list(merged.values())


def find_keys(wanted: str) -> list[KeyDoc]:
    """Find the keys that a text names: a path (`time.dt`), its end (`dt`), a section (`time`), or a simulator.

    A simulator of one's own is named as in a scene: "package.module:ConfigClass".
    Errors: InputError with similar keys if there is none.
    """
    if ":" in wanted:
        config = find_config(wanted)
        if isinstance(config, Problem):
            raise InputError("docs", "must name a simulator", repr(wanted), config.remedy)
        return list(_walk(config, "", wanted, inspect.getdoc(config) or ""))
    docs = list_keys()
    if wanted in known_names():
        return [doc for doc in docs if wanted in doc.simulators]
    for fits in (
        lambda path: path == wanted or path.startswith(f"{wanted}."),
        lambda path: path.endswith(f".{wanted}"),
        lambda path: f".{wanted}." in path,
    ):
        if found := [doc for doc in docs if fits(doc.path)]:
            keys = [doc for doc in found if doc.path != wanted or doc.kind not in SECTIONS]
            return keys or found  # a section is explained by its keys
    names = sorted({part for doc in docs for part in (doc.path, doc.path.rpartition(".")[2])})
    remedy = f"{did_you_mean(wanted, names)} `simphys docs SIMULATOR` lists all keys of a simulator."
    raise InputError("docs", "must name a key, a section or a simulator", repr(wanted), remedy)


def _walk(model: type[BaseModel], prefix: str, simulator: str, text: str, depth: int = 0) -> Iterator[KeyDoc]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        inner = list(_sections(field.annotation))
        yield KeyDoc(path, (simulator,), _kind(field.annotation), _default(field), _bounds(field), text)
        if depth < 3:
            for section, many in inner:
                after = f"{path}.{many}" if many else f"{path}."
                yield from _walk(section, after, simulator, inspect.getdoc(section) or "", depth + 1)


def _sections(annotation: Any, many: str = "") -> Iterator[tuple[type[BaseModel], str]]:
    """List the sections inside a type; those in lists and tables have a place of their own: `0.` or `NAME.`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, many
        return
    origin = typing.get_origin(annotation)
    place = "0." if origin is list else "NAME." if origin is dict else many
    for part in typing.get_args(annotation):
        yield from _sections(part, place)


def _kind(annotation: Any) -> str:
    """Describe a type in words of TOML."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " or ".join([f'"{part}"' if isinstance(part, str) else str(part) for part in parts])
    if origin is typing.Annotated:
        return "integer or text" if any([isinstance(part, WithJsonSchema) for part in parts]) else _kind(parts[0])
    if origin is list:
        return f"list of {_kind(parts[0])}"
    if origin is dict:
        return f"table of {_kind(parts[1])}"
    if parts and not isinstance(annotation, type):
        return " or ".join(dict.fromkeys(_kind(part) for part in parts if part is not type(None)))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    names: dict[object, str] = {float: "number", int: "integer", str: "text", bool: "true or false"}
    return names.get(annotation) or str(getattr(annotation, "__name__", annotation))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "its keys" if isinstance(value, BaseModel) else "none" if value is None else repr(value)


def _bounds(field: FieldInfo) -> str:
    found = []
    for each in [*field.metadata, *_metadata(field.annotation)]:
        limits = each.metadata if isinstance(each, FieldInfo) else [each]
        for limit in limits:
            limits_of = {sign: getattr(limit, name) for name, sign in BOUNDS.items() if hasattr(limit, name)}
            found += [f"{sign} {bound}" for sign, bound in limits_of.items() if bound != LARGEST]
    return ", ".join(dict.fromkeys(found))


def _metadata(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) is typing.Annotated:
        yield from typing.get_args(annotation)[1:]
    for part in typing.get_args(annotation):
        if not isinstance(part, str | int | float):
            yield from _metadata(part)
