"""Scenes of one file that differ in parameters alone: what they share is read, checked and built once.

A simulator lists the keys of numbers that become elements of a parameter as they are, and that no check of other
sections reads (`Config.PARAMETERS`). A scene with another number there is an earlier one with other elements. Which
elements, and that nothing else changes, is seen from one scene that is loaded as a whole. The number is validated by
its section, and the time step judged anew. All else, and what fails, is loaded as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from pydantic import BaseModel, ValidationError

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.scenefile.overrides import parse_override
from simphys.scenefile.section import EACH, Key

from .batches import share_model
from .scene import Scene, load_scene

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Place:
    """Elements of a parameter that are a number of the scene file."""

    parameter: str
    where: Array
    """True for these elements, in the shape of the parameter."""


class Family:
    """Scenes of one file, of which the first is the pattern of the others."""

    def __init__(self, path: str, overrides: Sequence[str]) -> None:
        """Load the first one. Errors: those of `load_scene`."""
        self.path, self.overrides = path, tuple(overrides)
        self.first = _load(path, overrides)
        self._places: dict[Key, _Place | None] = {}

    def load(self, overrides: Sequence[str]) -> Scene:
        """Load another one. Errors: those of `load_scene`."""
        found = self._vary(overrides)
        return _load(self.path, overrides) if found is None else found

    def _vary(self, overrides: Sequence[str]) -> Scene | None:
        """Make the scene from the first one; None where it has to be loaded as a whole."""
        changed = [(old, new) for old, new in zip(self.overrides, overrides, strict=False) if old != new]
        if len(overrides) != len(self.overrides) or self.first.experiments:
            return None
        sections: dict[str, Any] = {}
        fields: dict[str, Array] = {}
        try:
            for old, new in changed:
                key, value = _number(new)
                place = self._place(key, old, new)
                if place is None or _number(old)[0] != key:
                    return None
                name = str(key[0])
                sections[name] = _with_number(sections.get(name, getattr(self.first.config, name)), key[1:], value)
                present = fields.get(place.parameter, getattr(self.first.params, place.parameter).data)
                fields[place.parameter] = np.where(place.where, np.asarray(value, present.dtype), present)
            return self._replace(sections, fields)
        except (InputError, ValidationError, ArithmeticError, ValueError):
            return None

    def _replace(self, sections: dict[str, Any], fields: dict[str, Array]) -> Scene:
        config = self.first.config
        own = {name: sections.get(name, getattr(config, name)) for name in type(config).model_fields}
        params = self.first.params.replace(
            **{name: tensor(values, dtype=values.dtype) for name, values in fields.items()}
        )
        scene = replace(self.first, config=type(config).model_construct(**own), params=params)
        scene.require_stable()
        return scene

    def _place(self, key: Key, old: str, new: str) -> _Place | None:
        """Find the elements of a parameter that a key sets; None if it does something else."""
        if key not in self._places:
            self._places[key] = self._find_place(key, old, new)
        return self._places[key]

    def _find_place(self, key: Key, old: str, new: str) -> _Place | None:
        name = _parameter(type(self.first.config).PARAMETERS, key)
        before, number = _number(old)
        _, value = _number(new)
        if name is None or before != key or number == value or len(_settings(self.overrides, key)) > 1:
            return None
        other = _load(self.path, [new if text == old else text for text in self.overrides])
        one, two = getattr(self.first.params, name).data, getattr(other.params, name).data
        if one.shape != two.shape:
            return None
        where = one != two
        expected = self.first.params.replace(**{name: np.where(where, np.asarray(value, one.dtype), one)})
        same = other.model is self.first.model and other.steps == self.first.steps
        for part in ("params", "state", "design", "controls", "sensor"):
            mine, its = expected if part == "params" else getattr(self.first, part), getattr(other, part)
            same = same and _is_equal(mine, its)
        same = same and bool((one[where] == np.asarray(number, one.dtype)).all())
        return _Place(name, where) if same else None


def _load(path: str, overrides: Sequence[str]) -> Scene:
    return share_model(load_scene(path, overrides))


def _settings(overrides: Sequence[str], key: Key) -> list[str]:
    """Overrides that set a key, or a part of the scene around it or within it."""
    keys = [(text, parse_override(text).key) for text in overrides]
    return [text for text, other in keys if other[: len(key)] == key[: len(other)]]


@lru_cache(maxsize=64)
def _number(text: str) -> tuple[Key, float]:
    """Key and value of an override. Errors: ValueError for one that is no number."""
    found = parse_override(text)
    if isinstance(found.value, bool) or not isinstance(found.value, int | float):
        raise ValueError(text)
    return found.key, found.value


def _parameter(known: Mapping[Key, str], key: Key) -> str | None:
    """The parameter that a key is listed for; indices in lists count as EACH."""
    return known.get(tuple([EACH if isinstance(part, int) or part.isdecimal() else part for part in key]))


def _with_number(section: Any, key: Key, value: float) -> Any:
    """The same section with another number. Errors: ValidationError; ValueError where there is none yet."""
    if isinstance(section, list):
        place = int(key[0])
        return [*section[:place], _with_number(section[place], key[1:], value), *section[place + 1 :]]
    if not isinstance(section, BaseModel):
        raise ValueError("no section")
    name = str(key[0])
    if len(key) > 1:
        return section.model_copy(update={name: _with_number(getattr(section, name), key[1:], value)})
    return type(section).model_validate({**dict(section), name: value})


def _is_equal(one: Any, other: Any) -> bool:
    """True for records with the same numbers."""
    if one is None or other is None:
        return one is other
    mine, its = one.arrays(), other.arrays()
    return mine.keys() == its.keys() and all([np.array_equal(mine[name], its[name]) for name in mine])
