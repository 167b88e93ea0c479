"""Checks that given inertias are those of matter, and that unknown ones stay so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.scenefile.fit_sections import UnknownSection, ValueSection
from simphys.scenefile.section import Key, Problem, Words
from simphys.scenefile.unknown_entries import flat_entries, start_values, unknown_problems, value_problems, with_values
from simphys.simulator import Array

from .pseudo_inertia import DIAGONAL, MATTER, are_matter, find_gyration
from .scene import GYRATION, mass_and_inertia
from .sections import BodySection


def problems(bodies: Sequence[BodySection], named: Sequence[tuple[Key, Mapping[str, Any]]]) -> list[Problem]:
    """List the problems of inertias; `named`: keys of sections of unknowns and values, with what they hold."""
    wrong = [problem for place, body in enumerate(bodies) for problem in _check_body(("bodies", place), body)]
    by_roots = any(each.parameter == GYRATION for _, section in named for each in section.values())
    if by_roots and not wrong:
        wrong = list(_check_roots(bodies))
    if wrong:
        return wrong
    (_, unknowns), *given = named
    fields = _list_fields(bodies, by_roots=by_roots)
    if by_roots:
        wrong = [p for label, each in unknowns.items() for p in _check_unknown(("unknowns", label), each, fields)]
    values = [((*key, label), value) for key, section in given for label, value in section.items()]
    wrong += [p for key, value in values if value.parameter in fields for p in _check_value(key, value, fields)]
    if wrong or by_roots:
        return wrong
    for _, section in given:
        own = {label: value for label, value in section.items() if value.parameter == "inertia"}
        if not any(True for _ in value_problems(own, fields)):
            wrong += _check_sought(unknowns, with_values(own, fields))
    return wrong


def _check_body(key: Key, body: BodySection) -> Iterator[Problem]:
    """Check the numbers of an inertia in space."""
    given = body.inertia
    if not isinstance(given, list):
        return
    key = (*key, "inertia")
    if len(given) not in (3, 6):
        yield Problem(key, "has three moments, or six numbers", given, "Give three or six.")
    elif len(given) == 3 and min(given) <= 0:
        yield Problem(key, "moments of inertia are positive", given, "Correct them.")
    elif not are_matter(np.array(given)):
        yield Problem(key, MATTER, given, "Correct xx, yy, zz, yz, xz and xy.")


def _check_roots(bodies: Sequence[BodySection]) -> Iterator[Problem]:
    """Check that inertias have roots."""
    for place, (mass, inertia) in enumerate(map(mass_and_inertia, bodies)):
        if find_gyration(mass, inertia) is None:
            constraint = "where gyrations are sought, each moment is less than the sum of the two others"
            remedy = "Give moments of a body that is not flat."
            yield Problem(("bodies", place, "inertia"), constraint, inertia.tolist(), remedy)


def _list_fields(bodies: Sequence[BodySection], *, by_roots: bool) -> dict[str, Array]:
    """Return the inertias, and their roots where these are asked for, of bodies that have them."""
    found = [mass_and_inertia(body) for body in bodies]
    count = max(len(inertia) for _, inertia in found)
    fields = {"inertia": np.array([np.pad(inertia, (0, count - len(inertia))) for _, inertia in found])}
    if by_roots:
        fields[GYRATION] = np.array([find_gyration(mass, inertia) for mass, inertia in found])
    return fields


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
        wrong, constraint, remedy = given[~are_matter(given)], MATTER, "Correct them."
    if wrong.size:
        yield Problem((*key, "value"), constraint, wrong[0].tolist(), remedy)


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
        elif not are_matter(start[body]):
            yield Problem(("unknowns", label, "start"), MATTER, start[body].tolist(), "Start from those of a body.")


def _given_twice(key: Key) -> Problem:
    """Report an inertia that would come from two sides."""
    constraint = "inertia follows from the gyration, which is unknown or has a value"
    return Problem((*key, "parameter"), constraint, Words("both"), f"Name {GYRATION} alone.")


def _check_unknown(key: Key, unknown: UnknownSection, fields: Mapping[str, Array]) -> Iterator[Problem]:
    """Check that roots stay positive, and that nothing else gives the inertia."""
    if unknown.parameter == "inertia":
        yield _given_twice(key)
    if unknown.parameter != GYRATION:
        return
    count = fields[GYRATION].shape[1]
    try:
        numbers = flat_entries(unknown, fields[GYRATION].shape) % count
    except (IndexError, TypeError):
        return  # other checks report entries that do not exist
    if (numbers < DIAGONAL[count]).any() and unknown.transform != "log" and not unknown.bounds[0] > 0:
        found = Words(f"{unknown.transform}, from {unknown.bounds[0]}")
        remedy = 'Set transform = "log"; seek the others by an unknown of their own.'
        yield Problem((*key, "transform"), "roots on the diagonal stay positive", found, remedy)
