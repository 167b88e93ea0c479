"""Checks that given inertias are those of matter, and that unknown ones stay so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.scenefile.fit_sections import UnknownSection, ValueSection
from simphys.scenefile.section import Key, Problem, Words
from simphys.scenefile.unknown_entries import flat_entries, start_values, unknown_problems, value_problems, with_values
from simphys.simulator import Array

from .checks import ROUNDING
from .pseudo_inertia import DIAGONAL, find_gyration, second_moments
from .scene import GYRATION, are_named, mass_and_inertia
from .sections import BodySection

MATTER = "no principal moment of matter exceeds the sum of the two others"
"""Property that all inertias in space share."""


def problems(bodies: Sequence[BodySection], named: Sequence[tuple[Key, Mapping[str, Any]]]) -> Iterator[Problem]:
    """Yield the problems of inertias; `named`: keys of sections of unknowns and values, with what they hold."""
    wrong = [problem for place, body in enumerate(bodies) for problem in _check_numbers(("bodies", place), body)]
    by_roots = are_named((GYRATION,), *[each for _, each in named])
    found = [mass_and_inertia(body) for body in bodies]
    if by_roots and not wrong:
        wrong = list(_check_roots(found))
    yield from wrong
    if wrong:
        return
    shape = (len(bodies), 1 if len(bodies[0].position) == 2 else 6)
    if by_roots:
        for label, unknown in named[0][1].items():
            yield from _check_unknown(("unknowns", label), unknown, shape)
    count = max(len(inertia) for _, inertia in found)
    fields = {"inertia": np.array([np.pad(inertia, (0, count - len(inertia))) for _, inertia in found])}
    if by_roots:
        fields[GYRATION] = np.array([find_gyration(mass, inertia) for mass, inertia in found])
    wrong = [
        problem
        for section, values in named[1:]
        for label, value in values.items()
        if value.parameter in fields
        for problem in _check_value((*section, label), value, fields)
    ]
    yield from wrong
    if not (wrong or by_roots):
        for _, values in named[1:]:
            given = {label: value for label, value in values.items() if value.parameter == "inertia"}
            if not any(True for _ in value_problems(given, fields)):
                yield from _check_sought(named[0][1], with_values(given, fields))


def _check_roots(found: Sequence[tuple[float, Array]]) -> Iterator[Problem]:
    """Check that masses and inertias have roots."""
    for place, (mass, inertia) in enumerate(found):
        if find_gyration(mass, inertia) is None:
            yield Problem(
                key=("bodies", place, "inertia"),
                constraint="where gyrations are sought, each moment is less than the sum of the two others",
                found=inertia.tolist(),
                remedy="Give moments of a body that is not flat.",
            )


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
    elif not _is_matter(np.array(given)):
        yield Problem(key=key, constraint=MATTER, found=given, remedy="Correct xx, yy, zz, yz, xz and xy.")


def _check_value(key: Key, value: ValueSection, fields: Mapping[str, Array]) -> Iterator[Problem]:
    """Check that a value gives the inertia of matter, and that nothing else gives it; others check its entries."""
    name = value.parameter
    if name == "inertia" and GYRATION in fields:
        yield _given_twice(key)
        return
    if any(True for _ in value_problems({str(key[-1]): value}, fields)):
        return
    given = with_values({str(key[-1]): value}, fields)[name]
    if name == GYRATION:
        wrong = given[~(given[:, : DIAGONAL[given.shape[1]]] > 0).all(axis=1)]
        constraint, remedy = "roots on the diagonal are positive", "Give positive ones."
    elif given.shape[1] == 1:
        return  # other checks report moments that are not positive
    else:
        wrong = given[[not _is_matter(each) for each in given]]
        constraint, remedy = MATTER, "Correct them."
    if wrong.size:
        yield Problem(key=(*key, "value"), constraint=constraint, found=wrong[0].tolist(), remedy=remedy)


def _check_sought(unknowns: Mapping[str, UnknownSection], fields: Mapping[str, Array]) -> Iterator[Problem]:
    """Check that unknown moments in space start as those of matter, and that their bounds let them be so."""
    sought = {label: unknown for label, unknown in unknowns.items() if unknown.parameter == "inertia"}
    start = np.array(fields["inertia"], float)
    if start.shape[1] == 1 or unknown_problems(sought, fields):
        return  # other checks report these
    lower, upper, owners = start.copy(), start.copy(), np.full(start.shape, "", object)
    for label, unknown in sought.items():
        entries, found = flat_entries(unknown, start.shape), start_values(unknown, fields)
        start.reshape(-1)[entries] = found[np.arange(entries.size) % found.size]
        for limits, bound in zip((lower, upper), unknown.bounds, strict=True):
            limits.reshape(-1)[entries] = bound
        owners.reshape(-1)[entries] = label
    for body in np.flatnonzero((owners != "").any(axis=1)).tolist():
        label = next(each for each in owners[body] if each)
        most = upper[body, :3]  # the largest moments are matter, or one exceeds the sum of the two others
        if (lower[body, :3] > np.roll(most, 1) + np.roll(most, -1)).any():
            between = Words(f"moments from {lower[body].tolist()} to {upper[body].tolist()}")
            yield Problem(("unknowns", label, "bounds"), MATTER, between, "Widen them.")
        elif not _is_matter(start[body]):
            yield Problem(("unknowns", label, "start"), MATTER, start[body].tolist(), "Start from those of a body.")


def _is_matter(inertia: Array) -> bool:
    """Tell if moments [3] or a full tensor [6] may be those of matter, within rounding."""
    return bool(np.linalg.eigvalsh(second_moments(inertia))[0] >= -ROUNDING * inertia[:3].sum())


def _given_twice(key: Key) -> Problem:
    """Report an inertia that would come from two sides."""
    return Problem(
        key=(*key, "parameter"),
        constraint="inertia follows from the gyration, which is unknown or has a value",
        found=Words("both"),
        remedy=f"Name {GYRATION} alone.",
    )


def _check_unknown(key: Key, unknown: Any, shape: tuple[int, int]) -> Iterator[Problem]:
    """Check that roots stay positive, and that nothing else gives the inertia."""
    if unknown.parameter == "inertia":
        yield _given_twice(key)
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
