"""Sections of a scene that follow from the declared fields of its model: their keys, checks, demands and arrays."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Annotated, Any, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, Field, create_model

from simphys.autograd.errors import InputError
from simphys.scenefile.demands import Demand, demands_of
from simphys.scenefile.entry_names import BODIES, JOINTS, MOTORS, SPRINGS
from simphys.scenefile.section import NOTHING, Key, Length, NonNegative, Positive, Problem, Section, Words
from simphys.scenefile.shared import FieldFileSection, check_cells, fill_cells
from simphys.scenefile.sized import check_marks, marked_keys, named_keys
from simphys.simulator import Array
from simphys.simulator.declare import Declaration, Sign, compute_shape, declarations, meanings

C = TypeVar("C", bound=BaseModel)
M = TypeVar("M")

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
        if "cells" in counts:  # of 64-bit numbers
            declared = [*declarations(model.Params).values(), *declarations(model.State).values()]
            made.SIZES = (*made.SIZES, (counts["cells"], 8 * len([a for a in declared if a.shape.endswith("*cells")])))
        made.ROWS = _name_rows(model, made) | made.ROWS
        made.DEMANDS = _make_demands(model, made) | made.DEMANDS
        done: type[C] = made
        return done

    return complete


def check_fields(config: Any, sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Check marked keys, such as lengths of lists, and the files that sections give as fields of a Config's model."""
    sizes, places = _read_sizes(config, sections), dict(config.COUNTS)
    own: Any = type(config)
    if "cells" in places:
        places.setdefault("dim", places["cells"])
    counts = {name: size for name, size in sizes.items() if isinstance(size, int)}
    for name, kind in marked_keys(own).items():
        yield from check_marks(kind, sections.get(name), (name,), counts, places)
    for field in _list_fields(config.MODEL):
        section: Any = sections.get(field.section)
        given = getattr(section, field.name, None)
        if isinstance(given, FieldFileSection) and "cells" in sizes:
            yield from check_cells(field.key, sizes["cells"], given, positive=field.about.sign == "positive")
        elif given is not None and field.name not in marked_keys(section.__class__):
            yield from check_marks(_make_key(field.about, is_list=False)[0], given, field.key, counts, places)


def check_model(config: Any) -> Iterator[Problem]:
    """Make the model, and find the problem of the key with the name of a field that it refuses, or those with it.

    Errors: InputError for fields without such a key.
    """
    try:
        yield from config.find_problems_with(config.build_model())
    except InputError as error:
        field = re.match(r"[A-Z]\w*\.(\w+)", error.source)  # Model.field
        key = _find_key(config, field.group(1)) if field else None
        if key is None:
            raise
        given = getattr(getattr(config, str(key[0])), str(key[1])) if len(key) == 2 else True
        found = NOTHING if given is None else Words(error.found) if isinstance(error.found, str) else error.found
        yield Problem(key, error.constraint, found, error.remedy)


def _find_key(config: Any, field: str) -> Key | None:
    """Find the key of a scene with the name of a field of its model, or that stands for it."""
    if field in config.KEYS:
        found: Key = config.KEYS[field]
        return found
    if field in config.COUNTS:
        return config.COUNTS[field]
    if field in type(config).model_fields:
        return (field,)
    sections = [name for name, section in config if field in getattr(type(section), "model_fields", {})]
    return (sections[0], field) if sections else None


def fill_record(config: Any, record: Any) -> dict[str, Array]:
    """Compute the arrays of those fields of Params or State that sections give, at full size.

    Fields of a section that the scene does without have none, nor have those whose size no key of `scene_of` gives.
    """
    sizes = _read_sizes(config, dict(config))
    found = {}
    for field in _list_fields(record):
        given = getattr(getattr(config, field.section), field.name, None)
        given = field.about.standard if given is None else given
        if given is None and field.about.only_if and hasattr(config, field.section):
            found[field.of] = np.zeros(0)
        if given is None or not all([axis.isdigit() or axis.removeprefix("*") in sizes for axis in field.about.axes]):
            continue
        about = replace(field.about, only_if="")  # as it is given
        shape = compute_shape(f"{type(config).__name__}: {field.name}", SimpleNamespace(**sizes), about)
        is_file = isinstance(given, FieldFileSection)
        found[field.of] = fill_cells(shape, given) if is_file else np.full(shape, given, float)
    return found


def fill_model(config: Any, model: type[M], /, **others: Any) -> M:
    """Make the model of a Config: its fields are sizes, keys of the same name, the time step, and these `others`.

    Keys are those of [simulator], and of the sections that give sizes. Lists become tuples. Errors: InputError for
    fields that nothing gives, and of the model.
    """
    known = {"dt": config.time.dt}
    for name in ("simulator", *[str(key[0]) for key in config.COUNTS.values()]):
        section = getattr(config, name)
        for key, value in section if isinstance(section, Section) else ():
            if value is not None:
                known.setdefault(key, tuple(value) if isinstance(value, list) else value)
    known |= _read_sizes(config, dict(config)) | others
    every: Any = fields(model)  # type: ignore[arg-type]
    if missing := [f.name for f in every if f.name not in known and f.default is f.default_factory]:  # both MISSING
        source, constraint = f"{type(config).__name__}.build_model", f"all fields of {model.__name__} are given"
        remedy = f"Define it, with `return fill_model(self, {model.__name__}, {missing[0]}=...)`."
        raise InputError(source, constraint, f"no {', '.join(missing)}", remedy)
    return model(**{field.name: known[field.name] for field in every if field.name in known})


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
    """List the fields of a record, or of a model's two, that scenes hold; none for None."""
    if of is None:
        return []
    records = [of.Params, of.State] if hasattr(of, "Params") else [of]
    every = [(name, record, about) for record in records for name, about in declarations(record).items()]
    return [_Field(name, record, about, *about.key(name)) for name, record, about in every if about.place]


def _split(key: str) -> Key:
    return tuple([int(part) if part.isdigit() else part for part in key.split(".")])


def _make_sections(model: Any, config: type[BaseModel], counted: Collection[Key]) -> dict[str, Any]:
    """Make those sections of a model's fields that a Config has not itself, each with its default.

    The keys that are counted hold lists.
    """
    listed = [each for each in _list_fields(model) if each.section not in config.model_fields]
    found: dict[str, Any] = {}
    for section in dict.fromkeys(each.section for each in listed):
        own = [each for each in listed if each.section == section]
        keys: Any = {each.name: _make_key(each.about, is_list=each.key in counted) for each in own}
        title = "".join([word.capitalize() for word in section.split("_")])
        made: Any = create_model(f"{title}Section", __base__=Section, __module__=config.__module__, **keys)
        made.__doc__ = "\n".join([_describe(each) for each in own])
        found[section] = (made, ... if any([_is_required(each.about) for each in own]) else made())
    return found


def _name_rows(model: Any, config: Any) -> dict[str, str]:
    """Return the kinds of things that have names, by the fields that have a row for each of them."""
    kinds = {name: name for name in (JOINTS, SPRINGS) if name in config.model_fields}
    if JOINTS in kinds:
        kinds[MOTORS] = MOTORS
    if named_keys(config):
        kinds |= {"bodies": BODIES, "nodes": BODIES}
    declared = {**declarations(model.Params), **declarations(model.State)}
    return {name: kinds[about.axes[0]] for name, about in declared.items() if about.axes and about.axes[0] in kinds}


def _describe(field: _Field) -> str:
    meaning, standard = meanings(field.record).get(field.of, ""), field.about.standard
    if _is_vector(field.about) and standard is not None:  # others have the number as default of their key
        meaning = f"{meaning} {standard:g} by default."
    return textwrap.fill(f"{field.name} [{field.about.unit}]: {meaning}".rstrip(": "), 118)


def _is_vector(about: Declaration) -> bool:
    return bool(about.axes) and (about.axes[-1] == "dim" or about.axes[-1].isdigit())


def _is_required(about: Declaration) -> bool:
    return about.standard is None and not about.only_if


def _make_key(about: Declaration, *, is_list: bool) -> tuple[Any, Any]:
    """Make type and default of a key; a number stands for all entries, but not for the components of a vector."""
    number, default = NUMBERS[about.sign], ... if _is_required(about) else about.standard
    if (about.least, about.most) != (None, None):
        number = Annotated[number, Field(ge=about.least, le=about.most)]
    if not about.axes:
        return number, default
    if about.shape == "*cells":
        return number | FieldFileSection, default
    inner = number
    for axis in reversed(about.axes):
        length = Field(min_length=int(axis), max_length=int(axis)) if axis.isdigit() else Length(axis)
        inner = Annotated[list[inner], length]
    if is_list:
        return Annotated[inner, Field(min_length=1)], ...
    if not _is_vector(about):
        return number | inner, default
    return (inner, ...) if _is_required(about) else (inner | None, None)


def _require_sizes(source: str, listed: list[_Field], sizes: Mapping[str, str]) -> None:
    """Raise InputError unless the sizes in the shapes of all fields are known."""
    for field in listed:
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
    found: dict[str, Any] = {}
    for name, (section, *rest) in config.COUNTS.items():
        value = sections.get(section)
        for part in rest:
            value = value[part] if value and isinstance(part, int) else getattr(value, str(part), None)
        if value is not None:
            found[name] = tuple(value) if name in tuples else len(value) if isinstance(value, list) else 1
    if isinstance(cells := found.get("cells"), tuple):
        found["dim"] = len(cells)
    return found | config.find_sizes(sections)
