"""Sections of a scene that follow from the declared fields of its model: their keys, checks, demands and arrays."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, Field, create_model

from simphys.autograd.errors import InputError
from simphys.scenefile.demands import Demand, demands_of
from simphys.scenefile.errors import dotted
from simphys.scenefile.section import Key, NonNegative, Positive, Problem, Section
from simphys.scenefile.shared import FieldFileSection, check_cells, check_length, fill_cells
from simphys.simulator import Array
from simphys.simulator.declare import Declaration, Sign, compute_shape, declarations, meanings

C = TypeVar("C", bound=BaseModel)

NUMBERS: dict[Sign, Any] = {"any": float, "positive": Positive, "not_negative": NonNegative}


def scene_of(model: Any, **sizes: str) -> Callable[[type[C]], type[C]]:
    """Make a Config the scene of a model: fields that name a section get a key there, with checks.

    Values of single numbers are numbers; those of "*cells" are numbers or files; vectors, of shape "dim" or "n, 3",
    are lists; others are numbers, for all entries, or lists. Sections that the class has itself stay as they are, and
    hold these keys.

    Args:
        sizes: keys of the sizes in shapes, by their names: `n="start.position"` counts a list, and `cells="grid.cells"`
            is the tuple in "*cells".
    """

    def complete(config: type[C]) -> type[C]:
        counts = {name: _split(key) for name, key in sizes.items()}
        sections = _make_sections(model, config, set(counts.values()))
        _require_sizes(config.__name__, [each for each in _list_fields(model) if each.section in sections], sizes)
        made: Any = create_model(config.__name__, __base__=config, __module__=config.__module__, **sections)
        made.__doc__, made.__qualname__ = config.__doc__, config.__qualname__
        for section, _ in sections.values():  # where pickle finds it
            section.__qualname__ = f"{made.__qualname__}.{section.__name__}"
            setattr(made, section.__name__, section)
        made.MODEL = model
        made.COUNTS = counts
        made.FILES += tuple([(*each.key, "file") for each in _list_fields(model) if each.about.shape == "*cells"])
        made.DEMANDS = _make_demands(model, made) | made.DEMANDS
        done: type[C] = made
        return done

    return complete


def check_fields(config: Any, sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Check the lengths of lists and the files that sections give as fields of a Config's model."""
    if config.MODEL is None:
        return
    sizes = _read_sizes(config, sections)
    for field in _list_fields(config.MODEL):
        given = getattr(sections.get(field.section), field.name, None)
        if isinstance(given, FieldFileSection) and "cells" in sizes:
            yield from check_cells(field.key, sizes["cells"], given, positive=field.about.sign == "positive")
        elif isinstance(given, list):
            yield from _check_list(field.key, given, field.about.axes, config.COUNTS, sizes)


def fill_record(config: Any, record: Any) -> dict[str, Array]:
    """Compute the arrays of those fields of Params or State that sections give, at full size.

    Fields of a section that the scene does without have none, nor have those whose size no key of `scene_of` gives.
    """
    sizes = _read_sizes(config, dict(config))
    found = {}
    for field in _list_fields(record):
        given = getattr(getattr(config, field.section), field.name, None)
        given = field.about.standard if given is None else given
        if given is None or not all([axis.isdigit() or axis.removeprefix("*") in sizes for axis in field.about.axes]):
            continue
        shape = compute_shape(f"{type(config).__name__}: {field.name}", SimpleNamespace(**sizes), field.about)
        is_file = isinstance(given, FieldFileSection)
        found[field.of] = fill_cells(shape, given) if is_file else np.full(shape, given, float)
    return found


@dataclass(frozen=True)
class _Field:
    """A field of a record that scenes hold, and its place there."""

    of: str
    record: Any
    about: Declaration
    section: str
    name: str

    @property
    def key(self) -> Key:
        return (self.section, self.name)


def _list_fields(of: Any) -> list[_Field]:
    """List the fields of a record, or of a model's two, that scenes hold."""
    records = [of.Params, of.State] if hasattr(of, "Params") else [of]
    every = [(name, record, about) for record in records for name, about in declarations(record).items()]
    return [_Field(name, record, about, *about.key(name)) for name, record, about in every if about.place]


def _split(key: str) -> Key:
    return tuple([int(part) if part.isdigit() else part for part in key.split(".")])


def _make_sections(model: Any, config: type[BaseModel], counted: Collection[Key]) -> dict[str, Any]:
    """Make those sections of a model's fields that a Config has not itself, each with its default.

    The keys that are counted hold lists.
    """
    fields = [each for each in _list_fields(model) if each.section not in config.model_fields]
    found: dict[str, Any] = {}
    for section in dict.fromkeys(each.section for each in fields):
        own = [each for each in fields if each.section == section]
        keys: Any = {each.name: _make_key(each.about, is_list=each.key in counted) for each in own}
        title = "".join([word.capitalize() for word in section.split("_")])
        made: Any = create_model(f"{title}Section", __base__=Section, __module__=config.__module__, **keys)
        made.__doc__ = "\n".join([_describe(each) for each in own])
        found[section] = (made, made() if all([each.about.standard is not None for each in own]) else ...)
    return found


def _describe(field: _Field) -> str:
    meaning, standard = meanings(field.record).get(field.of, ""), field.about.standard
    if _is_vector(field.about) and standard is not None:  # others have the number as default of their key
        meaning = f"{meaning} {standard:g} by default."
    return textwrap.fill(f"{field.name} [{field.about.unit}]: {meaning}".rstrip(": "), 118)


def _is_vector(about: Declaration) -> bool:
    return bool(about.axes) and (about.axes[-1] == "dim" or about.axes[-1].isdigit())


def _make_key(about: Declaration, *, is_list: bool) -> tuple[Any, Any]:
    """Make type and default of a key; a number stands for all entries, but not for the components of a vector."""
    number, default = NUMBERS[about.sign], ... if about.standard is None else about.standard
    if not about.axes:
        return number, default
    if about.shape == "*cells":
        return number | FieldFileSection, default
    inner = number
    for _ in about.axes:
        inner = list[inner]
    if is_list:
        return Annotated[inner, Field(min_length=1)], ...
    if not _is_vector(about):
        return number | inner, default
    return (inner, ...) if about.standard is None else (inner | None, None)


def _require_sizes(source: str, fields: list[_Field], sizes: Mapping[str, str]) -> None:
    """Raise InputError unless the sizes in the shapes of all fields are known."""
    for field in fields:
        for axis in field.about.axes:
            if (name := axis.removeprefix("*")) not in sizes and not axis.isdigit():
                remedy = f'Add it: @scene_of(..., {name}="section.key").'
                raise InputError(source, f"scene_of says where the size {name} of {field.of} stands", "nothing", remedy)


def _make_demands(model: Any, config: type[BaseModel]) -> dict[str, Demand]:
    """Collect the demands of sections on the numbers that become fields. Errors: InputError for a missing key."""
    demands: dict[str, Demand] = {}
    for field in _list_fields(model):
        annotation = config.model_fields[field.section].annotation
        kinds = [kind for kind in (annotation, *get_args(annotation)) if hasattr(kind, "model_fields")]
        if not kinds or field.name not in kinds[0].model_fields:
            source, constraint = f"{config.__name__}.{field.section}", f"a section holds the key {field.name}"
            remedy = f"Give it this key, or correct the declaration of {field.of}."
            raise InputError(source, constraint, "no such key", remedy)
        demands |= demands_of(kinds[0], **{field.of: field.name})
    return demands


def _read_sizes(config: Any, sections: Mapping[str, Any]) -> dict[str, Any]:
    """Read the sizes that valid sections give: a list is a tuple where a shape has all its axes, else it is counted."""
    tuples = {axis[1:] for field in _list_fields(config.MODEL) for axis in field.about.axes if axis.startswith("*")}
    found = {}
    for name, (section, *rest) in config.COUNTS.items():
        value = sections.get(section)
        for part in rest:
            value = value[part] if value and isinstance(part, int) else getattr(value, str(part), None)
        if value is not None:
            found[name] = tuple(value) if name in tuples else len(value) if isinstance(value, list) else 1
    return found


def _check_list(
    key: Key, given: list[Any], axes: tuple[str, ...], counts: Mapping[str, Key], sizes: Mapping[str, Any]
) -> Iterator[Problem]:
    """Check the length of a list against its first axis, and those of its elements against the others."""
    if axes[0].isdigit():
        yield from check_length(key, given, int(axes[0]), "component")
    elif axes[0] in sizes:
        yield from check_length(key, given, sizes[axes[0]], f"of {dotted(counts[axes[0]])}")
    for place, row in enumerate(given):
        if isinstance(row, list):
            yield from _check_list((*key, place), row, axes[1:], counts, sizes)
