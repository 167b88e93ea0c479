"""The error that lists every problem of a scene."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from simphys.autograd.errors import InputError
from simphys.scenefile.section import Key, Problem, Words

_SHOWN_PER_LIST = 5
_SHOWN_CHARACTERS = 60


class ConfigError(InputError):
    """The problems of a scene, one InputError each in `errors`; its text has a line for each of them."""

    def __init__(self, errors: Sequence[InputError]) -> None:
        first = errors[0]
        super().__init__(first.source, first.constraint, first.found, first.remedy)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


def dotted(key: Key) -> str:
    """Format a key as in an override: geometry.anchors.0.stiffness."""
    return ".".join(str(part) for part in key)


def shown(value: object) -> str:
    """Format a value as TOML writes it, shortened if it is long."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 4] + " ..."


Where = Callable[[Key], tuple[int, str]]
"""Function from a key to its line (0 if it has none) and to its place in words ('scene.toml:12')."""


def config_error(problems: Iterable[Problem], where: Where) -> ConfigError:
    """The error for some problems, in the order of their lines.

    Only the first few elements of a list are reported: a script may repeat the same mistake in all of them. What all
    experiments have from one line of the scene is reported once.
    """
    errors: list[InputError] = []
    told: dict[Key, int] = {}
    shared: set[tuple[object, ...]] = set()
    for problem in sorted(problems, key=lambda each: where(each.key)[0]):
        if problem.key[:1] == ("experiments",):
            line = (*where(problem.key), problem.key[2:], problem.constraint, str(problem.found))
            if line[0] and line in shared:
                continue
            shared.add(line)
        of = _without_indices(problem.key)
        told[of] = told.get(of, 0) + 1
        if told[of] <= _SHOWN_PER_LIST:
            found = problem.found if isinstance(problem.found, Words) else shown(problem.found)
            errors.append(InputError(_who(problem.key, where), problem.constraint, str(found), problem.remedy))
    for of, count in told.items():
        if count > _SHOWN_PER_LIST:
            more = f"{count - _SHOWN_PER_LIST} more"
            errors.append(
                InputError(_who(of, where), "its elements have other problems like these", more, "Mend them.")
            )
    return ConfigError(errors)


def _who(key: Key, where: Where) -> str:
    _, place = where(key)
    return f"{place}: {dotted(key)}" if key else place


def _without_indices(key: Key) -> Key:
    end = len(key)
    while end and isinstance(key[end - 1], int):
        end -= 1
    return key[:end]
