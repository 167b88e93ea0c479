"""Checks that given inertias are those of matter, and that unknown ones stay so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.scenefile.section import Key, Problem, Words
from simphys.scenefile.unknown_entries import flat_entries

from .checks import ROUNDING
from .pseudo_inertia import DIAGONAL, find_gyration, second_moments
from .scene import GYRATION, are_named, mass_and_inertia
from .sections import BodySection


def problems(bodies: Sequence[BodySection], named: Sequence[tuple[Key, Mapping[str, Any]]]) -> Iterator[Problem]:
    """Yield the problems of inertias; `named`: keys of sections of unknowns and values, with what they hold."""
    wrong = [problem for place, body in enumerate(bodies) for problem in _check_numbers(("bodies", place), body)]
    yield from wrong
    if wrong or not are_named((GYRATION,), *[each for _, each in named]):
        return
    for place, body in enumerate(bodies):
        mass, inertia = mass_and_inertia(body)
        if find_gyration(mass, inertia) is None:
            yield Problem(
                key=("bodies", place, "inertia"),
                constraint="where gyrations are sought, each moment is less than the sum of the two others",
                found=inertia.tolist(),
                remedy="Give moments of a body that is not flat.",
            )
    shape = (len(bodies), 1 if len(bodies[0].position) == 2 else 6)
    for label, unknown in named[0][1].items():
        yield from _check_unknown(("unknowns", label), unknown, shape)


def _check_numbers(key: Key, body: BodySection) -> Iterator[Problem]:
    """Check the numbers of an inertia in space."""
    given = body.inertia
    if not isinstance(given, list):
        return
    key = (*key, "inertia")
    if len(given) not in (3, 6):
        yield Problem(key=key, constraint="has three moments, or six numbers", found=given, remedy="Give three or six.")
    elif len(given) == 3 and min(given) <= 0:
        yield Problem(key=key, constraint="moments of inertia are positive", found=given, remedy="Correct them.")
    elif not np.linalg.eigvalsh(second_moments(np.array(given)))[0] >= -ROUNDING * sum(given[:3]):
        constraint = "no principal moment of matter exceeds the sum of the two others"
        yield Problem(key=key, constraint=constraint, found=given, remedy="Correct xx, yy, zz, yz, xz and xy.")


def _check_unknown(key: Key, unknown: Any, shape: tuple[int, int]) -> Iterator[Problem]:
    """Check that roots stay positive, and that nothing else gives the inertia."""
    if unknown.parameter == "inertia":
        yield Problem(
            key=(*key, "parameter"),
            constraint="inertia follows from the gyration, which is unknown or has a value",
            found=Words("both"),
            remedy=f"Seek {GYRATION} alone.",
        )
    if unknown.parameter != GYRATION:
        return
    try:
        numbers = flat_entries(unknown, shape) % shape[1]
    except (IndexError, TypeError):
        return  # other checks report entries that do not exist
    if (numbers < DIAGONAL[shape[1]]).any() and unknown.transform != "log" and not unknown.bounds[0] > 0:
        yield Problem(
            key=(*key, "transform"),
            constraint="roots on the diagonal stay positive",
            found=Words(f"{unknown.transform}, from {unknown.bounds[0]}"),
            remedy='Set transform = "log"; seek the others by an unknown of their own.',
        )
