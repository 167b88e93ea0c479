"""Several recordings in one scene: each of [[experiments]] completes what the scene says for all of them.

The tables `observations`, `values` and `control` of an experiment are laid over those of the scene, key by key, so that
an experiment states only what is its own. A resolved scene holds each experiment whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simphys.scenefile.section import NOTHING, Key, Problem

MERGED = ("observations", "values", "control")
"""Sections that an experiment has of its own."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]*")


def merge_tables(base: Any, own: Any) -> Any:
    """Lay a table over another one, key by key at any depth; other values replace what is there."""
    if not (isinstance(base, Mapping) and isinstance(own, Mapping)):
        return own
    return {**base, **{name: merge_tables(base[name], value) if name in base else value for name, value in own.items()}}


def complete_experiments(data: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the experiments of a scene, given as nested tables, by its other sections.

    [observations] then stands in the experiments alone. Tables that are not valid are left to the validation.
    """
    given = data.get("experiments")
    if (
        not isinstance(given, Sequence)
        or isinstance(given, str)
        or not all(isinstance(each, Mapping) for each in given)
    ):
        return dict(data)
    if not given:
        return dict(data)
    made = []
    for place, own in enumerate(given):
        base = {name: data[name] for name in MERGED if name in data}
        made.append({"name": f"experiment {place + 1}", **merge_tables(base, own)})
    return {**{name: value for name, value in data.items() if name != "observations"}, "experiments": made}


def check_names(names: Sequence[str]) -> Iterator[Problem]:
    """Check that names of experiments can be told apart, and name groups of a file."""
    for place, name in enumerate(names):
        key: Key = ("experiments", place, "name")
        if not NAME.fullmatch(name):
            constraint = "must be of letters, digits, spaces and _ . -, and begin with a letter or a digit"
            yield Problem(key, constraint, name, "Give it another name.")
        elif name in names[:place]:
            yield Problem(key, "names of experiments must differ", name, "Give it another name.")


def check_alternatives(steps: int | None, duration: float | None, key: Key) -> Iterator[Problem]:
    """Check that a horizon is given in one way."""
    if steps is not None and duration is not None:
        yield Problem(key, "needs only one of steps and duration", {"steps": steps, "duration": duration}, "Drop one.")


def check_each(unknowns: Mapping[str, Any], *, several: bool) -> Iterator[Problem]:
    """Check that unknowns of each experiment belong to several."""
    for label, unknown in unknowns.items():
        if unknown.experiments == "each" and not several:
            yield Problem(
                ("unknowns", label, "experiments"),
                '"each" needs experiments',
                NOTHING,
                "Add [[experiments]], one for each recording, or drop it.",
            )
