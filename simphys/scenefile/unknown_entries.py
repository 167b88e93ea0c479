"""Entries and start values of unknowns: their meaning, and checks that they fit the fields that they name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.files.field_file import read_field
from simphys.scenefile.errors import config_error
from simphys.scenefile.fit_sections import BoxSection, Numbers, UnknownSection, ValueSection
from simphys.scenefile.section import Key, Problem, Range, Words, rows_of
from simphys.scenefile.sought import advise_parameter
from simphys.scenefile.validate import did_you_mean


def flat_entries(unknown: UnknownSection, shape: tuple[int, ...]) -> np.ndarray:
    """Indices of the unknown's entries in its field, flattened row by row: the entry [i, j] of [n, dim] is i*dim + j.

    An index of a row stands for the whole row. The entries must be valid, see `validate_unknowns`.
    """
    every = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    if unknown.entries is None:
        return every.reshape(-1)
    if isinstance(unknown.entries, Range):
        return every[rows_of(unknown.entries)].reshape(-1)
    if isinstance(unknown.entries, BoxSection):
        corners = zip(unknown.entries.first, unknown.entries.last, strict=True)
        return every[tuple([slice(first, last + 1) for first, last in corners])].reshape(-1)
    numbers: list[Any] = unknown.entries
    picked = [every[tuple(entry) if isinstance(entry, list) else entry] for entry in numbers]
    return np.concatenate([np.reshape(each, -1) for each in picked])


def value_count(unknown: UnknownSection, shape: tuple[int, ...]) -> int:
    """Count the sought values: one for each entry, for each element of a row if rows are tied, or one for all."""
    if unknown.tied == "rows":
        return int(np.prod(shape[1:], dtype=int))
    return 1 if unknown.tied else flat_entries(unknown, shape).size


def start_values(unknown: UnknownSection, values: Mapping[str, np.ndarray]) -> np.ndarray:
    """The start value of every entry [number of entries], or of those that tied ones share, see `value_count`."""
    field = values[unknown.parameter]
    count = value_count(unknown, field.shape)
    if unknown.start is None:
        return np.array(field.reshape(-1)[flat_entries(unknown, field.shape)][:count], dtype=float)
    return _given(unknown, unknown.start, field.shape)


def truth_values(unknown: UnknownSection, values: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """The known value of every entry, as `start_values` gives those of the start; None where there is none."""
    return None if unknown.truth is None else _given(unknown, unknown.truth, values[unknown.parameter].shape)


def _given(unknown: UnknownSection, given: float | Numbers | str, shape: tuple[int, ...]) -> np.ndarray:
    """A start or a truth as numbers, in a list or in a file, of the field or of what is sought. Errors: ValueError."""
    count = value_count(unknown, shape)
    if isinstance(given, str):
        found = read_field(given, [(count,)] if unknown.tied else [shape, (count,)])
        return found.reshape(-1)[flat_entries(unknown, shape)] if found.shape == shape else found
    numbers = np.concatenate([np.ravel(each) for each in np.atleast_1d(np.asarray(given, dtype=object))])
    return np.broadcast_to(numbers.astype(float), (count,)).copy()


def validate_unknowns(unknowns: Mapping[str, UnknownSection], values: Mapping[str, np.ndarray]) -> None:
    """Raise ConfigError with every problem of unknowns that were not loaded from a file.

    Args:
        unknowns: by label.
        values: the scene's value of every parameter field and every state component, in full length.
    """
    if problems := unknown_problems(unknowns, values):
        raise config_error(problems, lambda key: (0, "unknowns"))


def unknown_problems(unknowns: Mapping[str, UnknownSection], values: Mapping[str, np.ndarray]) -> list[Problem]:
    """Collect all problems of unknowns, given the scene's values of every field."""
    problems: list[Problem] = []
    owners: dict[str, np.ndarray] = {}
    for label, unknown in unknowns.items():
        key: Key = ("unknowns", label)
        found = _problems(key, unknown, values)
        if not found:
            found = _shared(key, unknown, values[unknown.parameter].shape, list(unknowns), owners)
        problems += found
    return problems


def value_problems(sections: Mapping[str, ValueSection], values: Mapping[str, np.ndarray]) -> Iterator[Problem]:
    """Find all problems of values that replace those of fields."""
    for problem in unknown_problems({label: section.as_unknown() for label, section in sections.items()}, values):
        _, label, *rest = problem.key
        yield replace(problem, key=("values", label, *["value" if part == "start" else part for part in rest]))


def with_values(sections: Mapping[str, ValueSection], values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Replace parts of fields by the values of valid sections; the arrays given are left alone."""
    changed = dict(values)
    for section in sections.values():
        unknown, name = section.as_unknown(), section.parameter
        field = np.array(changed[name], dtype=float)
        entries = flat_entries(unknown, field.shape)
        found = start_values(unknown, values)
        field.reshape(-1)[entries] = found[np.arange(entries.size) % found.size]
        changed[name] = field
    return changed


def _problems(key: Key, unknown: UnknownSection, values: Mapping[str, np.ndarray]) -> list[Problem]:
    if unknown.parameter not in values:
        constraint = "must name a parameter, a state component or a control"
        advice = advise_parameter(unknown.parameter, values) or did_you_mean(unknown.parameter, list(values))
        return [Problem((*key, "parameter"), constraint, unknown.parameter, advice)]
    shape = values[unknown.parameter].shape
    if 0 in shape:
        name = unknown.parameter
        constraint, found = "must name numbers that the scene has", Words(f"{name}, of which it has none")
        return [Problem((*key, "parameter"), constraint, found, "Leave it out, or add what has such a number.")]
    problems = _entry_problems(key, unknown, shape) or _smooth_problems(key, unknown, shape)
    problems = problems or _start_problems(key, unknown, values) or _bound_problems(key, unknown, values)
    if problems or unknown.truth is None:
        return problems
    return _given_problems((*key, "truth"), unknown, unknown.truth, shape)


def _smooth_problems(key: Key, unknown: UnknownSection, shape: tuple[int, ...]) -> list[Problem]:
    if unknown.smooth is None or (shape and not unknown.tied):
        return []
    constraint, remedy = "belongs to unknowns with a value for each cell of a field", "Drop it."
    return [Problem((*key, "smooth"), constraint, unknown.smooth, remedy)]


def _entry_problems(key: Key, unknown: UnknownSection, shape: tuple[int, ...]) -> list[Problem]:
    name = unknown.parameter
    listed = unknown.entries if isinstance(unknown.entries, list) else []
    if unknown.tied == "rows" and (len(shape) < 2 or any(isinstance(entry, list) for entry in listed)):
        whole = "tied rows are whole rows of a field with rows"
        found = Words(f"entries inside of rows of {name}" if len(shape) > 1 else f"{name} of the shape {list(shape)}")
        remedy = "Give indices of rows as entries." if len(shape) > 1 else "Use tied = true."
        return [Problem((*key, "tied"), whole, found, remedy)]
    if unknown.entries is None:
        return []
    if unknown.entries == [] or not shape:
        constraint = f"{name} is a single number" if not shape else "must not be empty"
        return [Problem((*key, "entries"), constraint, unknown.entries, f"Leave entries out to take all of {name}.")]
    if isinstance(unknown.entries, Range):
        return _range_problems((*key, "entries"), unknown.entries, f"{name} has the shape {list(shape)}", shape[0])
    if isinstance(unknown.entries, BoxSection):
        return _box_problems((*key, "entries"), unknown.entries, f"{name} has the shape {list(shape)}", shape)
    problems = []
    for position, entry in enumerate(unknown.entries):
        index: list[Any] = entry if isinstance(entry, list) else [entry]
        if any([isinstance(part, str) for part in index]):  # a name that neither loading nor `Scene.objective` knows
            problems.append(Problem((*key, "entries", position), "must be numbers here", entry, "Count from 0."))
            continue
        fits = len(index) in (1, len(shape)) if not isinstance(entry, list) else len(index) == len(shape)
        if not fits or any(part >= size for part, size in zip(index, shape, strict=False)):
            whole = f"{name} has the shape {list(shape)}, counted from 0"
            remedy = f"Give indices below {shape[0]}" + (f", or pairs below {list(shape)}." if len(shape) > 1 else ".")
            problems.append(Problem((*key, "entries", position), whole, entry, remedy))
    if not problems and len(set(indices := flat_entries(unknown, shape).tolist())) < len(indices):
        once, remedy = "an entry is listed once", "Take the repeated ones out."
        problems.append(Problem((*key, "entries"), once, unknown.entries, remedy))
    return problems


def _range_problems(key: Key, rows: Range, whole: str, count: int) -> list[Problem]:
    if rows.last >= count:
        return [Problem((*key, "last"), f"{whole}, counted from 0", rows.last, f"Give an index below {count}.")]
    if rows.first > rows.last:
        return [Problem((*key, "first"), f"must not be beyond last = {rows.last}", rows.first, "Exchange them.")]
    return []


def _box_problems(key: Key, box: BoxSection, whole: str, shape: tuple[int, ...]) -> list[Problem]:
    for name, corner in (("first", box.first), ("last", box.last)):
        if len(corner) != len(shape) or any(at >= size for at, size in zip(corner, shape, strict=False)):
            remedy = f"Give {len(shape)} indices below {list(shape)}."
            return [Problem((*key, name), f"{whole}, counted from 0", corner, remedy)]
    if any(first > last for first, last in zip(box.first, box.last, strict=True)):
        return [Problem((*key, "first"), f"must not be beyond last = {box.last}", box.first, "Exchange the corners.")]
    return []


def _start_problems(key: Key, unknown: UnknownSection, values: Mapping[str, np.ndarray]) -> list[Problem]:
    field = values[unknown.parameter]
    entries = flat_entries(unknown, field.shape)
    wanted = value_count(unknown, field.shape)
    if unknown.start is None:
        inherited = field.reshape(-1)[entries].reshape(-1, wanted)
        if unknown.tied and np.ptp(inherited, axis=0).any():
            between = Words(f"values from {inherited.min():g} to {inherited.max():g} in the scene")
            remedy = f"Give {'one number' if wanted == 1 else f'{wanted} numbers'} as start."
            what = "rows" if unknown.tied == "rows" else "entries"
            return [Problem(key, f"tied {what} share one start", between, remedy)]
        return []
    return _given_problems((*key, "start"), unknown, unknown.start, field.shape)


def _given_problems(
    key: Key, unknown: UnknownSection, given: float | Numbers | str, shape: tuple[int, ...]
) -> list[Problem]:
    """Check a start or a truth."""
    try:
        _given(unknown, given, shape)
    except InputError as error:  # of a file
        found = error.found if isinstance(error.found, str) else str(error.found)
        return [Problem(key, f"{error.constraint} ({error.source})", Words(found), error.remedy)]
    except ValueError:
        wanted = value_count(unknown, shape)
        each = "element of a row" if unknown.tied else "entry"
        constraint = f"must be one number{'' if wanted == 1 else f' or {wanted} numbers, one for each {each}'}"
        return [Problem(key, constraint, given, "Give one number, it serves for all entries.")]
    return []


def _bound_problems(key: Key, unknown: UnknownSection, values: Mapping[str, np.ndarray]) -> list[Problem]:
    lower, upper = unknown.bounds
    start = start_values(unknown, values)
    where = (*key, "start") if unknown.start is not None else key
    problems = []
    if not lower < upper:
        remedy = "Write [lower, upper]; inf and -inf leave a side open."
        constraint = "the lower bound must be below the upper one"
        problems.append(Problem((*key, "bounds"), constraint, unknown.bounds, remedy))
    elif not np.all(inside := (start >= lower) & (start <= upper)):
        constraint = f"the bounds [{lower:g}, {upper:g}] must include the start"
        found = Words(f"a start of {start[~inside][0]:g}")
        problems.append(Problem((*key, "bounds"), constraint, found, "Widen the bounds or move the start."))
    if unknown.transform == "log":
        remedy = 'Give a positive value, or use transform = "linear".'
        if np.any(start <= 0.0):
            found = Words(f"a start of {start.min():g}")
            problems.append(Problem(where, "the log transform needs a positive start", found, remedy))
        if np.isfinite(lower) and lower < 0.0:
            constraint = "the log transform needs bounds that are not negative"
            problems.append(Problem((*key, "bounds"), constraint, unknown.bounds, remedy))
    return problems


def _shared(
    key: Key, unknown: UnknownSection, shape: tuple[int, ...], labels: list[str], owners: dict[str, np.ndarray]
) -> list[Problem]:
    """An entry is unknown once: two unknowns for it could not be told apart.

    `owners` has the number of the unknown of each entry of a field, -1 for none.
    """
    owner = owners.setdefault(unknown.parameter, np.full(math.prod(shape), -1, np.int32))
    entries = flat_entries(unknown, shape)
    for entry in entries[owner[entries] >= 0][:1].tolist():
        index = [int(part) for part in np.unravel_index(entry, shape)] if shape else []
        found = Words(f"{unknown.parameter} {index}, which is unknown in '{labels[owner[entry]]}' as well")
        return [Problem((*key, "entries"), "an entry is unknown once", found, "Take it out of one of them.")]
    owner[entries] = labels.index(str(key[-1]))
    return []
