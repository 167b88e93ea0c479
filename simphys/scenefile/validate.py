"""Conversion of nested tables to sections, which reports every problem and not only the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from simphys.scenefile import sought
from simphys.scenefile.errors import dotted
from simphys.scenefile.section import NOTHING, Key, Problem, key_type

# pydantic's kinds of error in this project's words; each completes 'must be ...'.
_REQUIRED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a string",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "finite_number": "a finite number",
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:.12g}",
    "literal_error": "one of {expected}",
    "union_tag_invalid": "of one of the kinds {expected_tags}",
    "union_tag_not_found": "of a kind: give the key {discriminator}",
    "too_short": "a list of {min_length} or more elements",
    "too_long": "a list of at most {max_length} elements",
}


def validate_sections(model: type[BaseModel], data: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Validate each top-level key on its own: the valid sections, and the problems of the others.

    That one section is invalid so does not hide what is wrong between two others.
    """
    valid: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in data.keys() - model.model_fields.keys():
        problems.append(_unknown_key((name,), data[name], list(model.model_fields)))
    for name, field in model.model_fields.items():
        if name not in data:
            if field.is_required():
                problems.append(_missing((name,)))
            else:
                valid[name] = field.get_default(call_default_factory=True)
            continue
        try:
            valid[name] = _adapter(model, name).validate_python(data[name])
        except ValidationError as error:
            problems += _problems(error, model, name, data)
    return valid, problems


def find_broken_texts(data: Any, key: Key = ()) -> Iterator[Problem]:
    """Find texts of bytes that are no UTF-8, which pictures cannot show; a path may be of any bytes."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield from find_broken_texts(value, (*key, name))
    elif isinstance(data, (list, tuple)):
        for place, value in enumerate(data):
            yield from find_broken_texts(value, (*key, place))
    elif isinstance(data, str) and "/" not in data and key != ("output", "folder") and not _is_text(data):
        yield Problem(key, "must be text", ascii(data), "Write it in UTF-8.")


def _is_text(value: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


@cache
def _adapter(model: type[BaseModel], name: str) -> TypeAdapter[Any]:
    """The validator of a section; to make it takes longer than most sections."""
    return TypeAdapter(key_type(model, name))


def did_you_mean(word: str, known: list[str]) -> str:
    """Suggest a remedy for an unknown word: the nearest known one, or all of them."""
    near = get_close_matches(word, known, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known) or 'none'}."


def describe_range(error: ValidationError) -> str:
    """Tell the range that a number misses, as problems do; "" for an error of another kind."""
    ranges = [each for each in error.errors(include_url=False) if each["type"].startswith(("greater", "less"))]
    texts = dict.fromkeys([_REQUIRED[each["type"]].format(**each["ctx"]) for each in ranges])
    return f"must be {' or '.join(texts)}" if texts else ""


def _problems(error: ValidationError, model: type[BaseModel], name: str, data: Mapping[str, Any]) -> list[Problem]:
    """Collect the problems of one section; errors of pydantic about alternatives of one value are joined."""
    problems: list[Problem] = []
    required: dict[Key, _Required] = {}
    for entry in error.errors(include_url=False):
        location: Key = (name, *entry["loc"])
        kind = entry["type"]
        key, found = _follow(location, data, keep_last=kind == "missing")
        if kind == "missing":
            problems.append(_missing(key))
        elif kind == "extra_forbidden":
            problems.append(_unknown_key(key, found, _known_keys(model, location[:-1]), _sections_with(model, key)))
        else:
            context = entry.get("ctx", {})
            text = _REQUIRED[kind].format(**context) if kind in _REQUIRED else entry["msg"]
            at_key = required.setdefault(key, _Required(found, [], [], []))
            (at_key.types if kind.endswith("_type") or kind == "literal_error" else at_key.ranges).append(text)
            at_key.options.extend(_options(context))
    deeper = {*required, *[problem.key for problem in problems]}
    for key, at_key in required.items():
        if any(other[: len(key)] == key for other in deeper if len(other) > len(key)):
            continue  # of a number-or-list given as a list, only the list's own error is of interest
        found, options = at_key.found, at_key.options
        # Of a number-or-list given as a number, only that the number is wrong.
        texts = list(dict.fromkeys(at_key.ranges or at_key.types))
        is_number = isinstance(found, (int, float)) and any("number" in text or "least" in text for text in texts)
        remedy = did_you_mean(str(found), options) if options and not is_number else _remedy(key, found, texts)
        problems.append(Problem(key, f"must be {' or '.join(texts)}", found, remedy))
    return problems


@dataclass(frozen=True)
class _Required:
    """Requirements of pydantic at one key: types, and ranges for a value of a right type; options are names."""

    found: object
    types: list[str]
    ranges: list[str]
    options: list[str]


def _remedy(key: Key, found: object, texts: list[str]) -> str:
    if found == sought.UNKNOWN and any("number" in text for text in texts):
        return sought.advise_number(key)
    if isinstance(found, str) and any(letter.isdigit() for letter in found) and any("number" in text for text in texts):
        return "Write numbers without quotes."
    if isinstance(found, (int, float)) and "a string" in texts and "a number" not in texts:
        return "Write strings in quotes."
    return f"Give a value that is {' or '.join(texts)}."


def _options(context: Mapping[str, Any]) -> list[str]:
    """The choices of a literal or a kind, from pydantic's text "'a', 'b' or 'c'"."""
    text = str(context.get("expected", context.get("expected_tags", "")))
    return [part.strip(" '") for part in text.replace(" or ", ",").split(",") if part]


def _missing(key: Key) -> Problem:
    what = "section" if len(key) == 1 else "key"
    return Problem(key, f"this {what} is required", NOTHING, f"Add {dotted(key)}.")


def _unknown_key(key: Key, found: object, known: list[str], elsewhere: Sequence[str] = ()) -> Problem:
    what = "section" if len(key) == 1 else "key"
    remedy = did_you_mean(str(key[-1]), known)
    if elsewhere:
        remedy += f" '{key[-1]}' is a key of {' and of '.join(elsewhere)}."
    return Problem(key, f"unknown {what}", found, remedy)


def _sections_with(model: type[BaseModel], key: Key) -> list[str]:
    """Find other sections that have a key by this name; none for a section."""
    others = [name for name in model.model_fields if name != key[0]] if len(key) > 1 else []
    return [name for name in others if any(key[-1] in each.model_fields for each in _models(model, name))]


def _follow(location: Key, data: Any, *, keep_last: bool) -> tuple[Key, object]:
    """pydantic's location without the names of union members that it contains, and the value there."""
    key: Key = ()
    for position, part in enumerate(location):
        is_name = isinstance(data, dict) and part in data
        is_index = isinstance(data, list) and part in range(len(data))
        if is_name or is_index:
            data = data[part]
            key = (*key, part)
        elif keep_last and position == len(location) - 1:
            key = (*key, part)
    return key, data


def _known_keys(model: type[BaseModel], location: Key) -> list[str]:
    """The keys that the table at a location may have."""
    models = [model]
    for part in location:
        inner = [found for each in models if part in each.model_fields for found in _models(each, str(part))]
        of_kind = [each for each in models if "kind" in each.model_fields and part in _kinds(each)]
        models = inner or of_kind or models
    return list(dict.fromkeys(key for each in models for key in each.model_fields))


def _kinds(model: type[BaseModel]) -> tuple[Any, ...]:
    return get_args(model.model_fields["kind"].annotation)


def _models(model: type[BaseModel], field: str) -> Iterator[type[BaseModel]]:
    """All models that a field's type mentions: X in X | None, list[X], dict[str, X]."""
    pending = [model.model_fields[field].annotation]
    while pending:
        annotation = pending.pop(0)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
        else:
            pending += get_args(annotation)
