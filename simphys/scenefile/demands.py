"""Demands of sections on their numbers, such as a sign, which values that replace these have to meet, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from simphys.scenefile.fit_sections import UnknownSection, ValueSection
from simphys.scenefile.section import Key, Problem, Section, Words, key_type
from simphys.scenefile.unknown_entries import flat_entries, start_values
from simphys.scenefile.validate import describe_range

Demand = Callable[[float], str]
"""Function that names what a number has to be, such as "must be at least 0"; "" if it is so."""


def demands_of(section: type[Section], *keys: str, prefix: str = "", **others: str) -> dict[str, Demand]:
    """Return what a section demands of its numbers, by the names of the parameters that they become.

    Args:
        keys: those of numbers whose parameters have their names, after a prefix.
        others: keys of numbers by the names of their parameters, where these differ.
    """
    names = {f"{prefix}{key}": key for key in keys} | others
    return {name: partial(_name_range, section, key) for name, key in names.items()}


def value_refusals(
    sections: Mapping[str, ValueSection],
    unknowns: Mapping[str, UnknownSection],
    values: Mapping[str, np.ndarray],
    demands: Mapping[str, Demand],
) -> Iterator[Problem]:
    """Find valid values that the section of their parameter would refuse.

    Entries that are unknown may have them: a fit that is free to try such numbers may have found these.
    """
    for label, section in sections.items():
        name = section.parameter
        if name not in demands:
            continue
        shape = values[name].shape
        sought = [flat_entries(each, shape) for each in unknowns.values() if each.parameter == name]
        entries, found = flat_entries(section.as_unknown(), shape), start_values(section.as_unknown(), values)
        known = found[np.arange(entries.size) % found.size][~np.isin(entries, np.concatenate([[], *sought]))]
        for number in [known.min(), known.max()] if known.size else []:
            if constraint := demands[name](float(number)):
                key: Key = ("values", label, "value")
                remedy = f"Give {name} a value that its section would take."
                yield Problem(key, constraint, Words(f"{number:g}"), remedy)
                break


@cache
def _adapter(section: type[Section], key: str) -> TypeAdapter[Any]:
    return TypeAdapter(key_type(section, key))


def _name_range(section: type[Section], key: str, number: float) -> str:
    try:
        _adapter(section, key).validate_python(number)
    except ValidationError as error:
        return describe_range(error)
    return ""
