"""Names in the entries of unknowns and values, such as `entries = ["ball"]`: of bodies, joints, springs or channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from simphys.scenefile.body_names import change_at, given_names, name_bodies, name_naming_key, suggest
from simphys.scenefile.errors import config_error
from simphys.scenefile.fit_sections import UnknownSection
from simphys.scenefile.section import EACH, Key, Problem

BODIES, JOINTS, SPRINGS, MOTORS = "bodies", "joints", "springs", "motors"
"""Kinds of things that rows of fields stand for: see `Config.ROWS`. A motor has the name of its joint."""
OF_CHANNELS = ("control_weight", "control_bias", "control_amplitude", "control_gain", "control_offset", "control_delay")
"""Numbers of a control with a row for each channel."""
PLACES: tuple[Key, ...] = tuple(
    [(*before, section, EACH) for before in ((), ("experiments", EACH)) for section in ("unknowns", "values")]
)


class Rows(NamedTuple):
    """Names of the rows of a field; None for one without a name."""

    word: str
    names: Sequence[str | None]
    naming: str = ""
    """Key that gives them; empty where there is none."""


def replace_entry_names(scene: dict[str, Any], rows: Mapping[str, str]) -> tuple[dict[str, Any], list[Problem]]:
    """Replace names in the entries of unknowns and values by numbers, and report those that there are not.

    rows: what each field of the simulator has a row for; others have no names.
    """
    problems: list[Problem] = []

    def number(key: Key, section: Any) -> Any:
        if not isinstance(section, Mapping) or not isinstance(section.get("entries"), list):
            return section
        if not any([isinstance(_row_of(entry), str) for entry in section["entries"]]):
            return section
        known = _find_rows(scene, str(section.get("parameter")), rows)
        entries: list[Any] = []
        for place, entry in enumerate(section["entries"]):
            first, *others = entry if isinstance(entry, list) and entry else [entry]
            if isinstance(first, str) and first in known.names:
                first = known.names.index(first)
            elif isinstance(first, str):
                within = (0,) if isinstance(entry, list) else ()
                problems.append(_unknown((*key, "entries", place, *within), first, known))
            entries.append([first, *others] if isinstance(entry, list) and entry else first)
        return {**section, "entries": entries}

    for place in PLACES:
        scene = change_at(scene, (), place, number)
    return scene, problems


def number_entries(config: Any, unknowns: Mapping[str, UnknownSection]) -> Mapping[str, UnknownSection]:
    """Replace names in the entries of a script's unknowns by numbers, as loading does with those of a scene file.

    config: that of the scene, with the things that have names. Errors: ConfigError for names that there are not.
    """
    listed = [each.entries for each in unknowns.values() if isinstance(each.entries, list)]
    if not any([isinstance(_row_of(entry), str) for entries in listed for entry in entries]):
        return unknowns
    tables = config.model_dump(include={"simulator", "geometry", "control", "bodies", JOINTS, SPRINGS})
    given = {label: {"parameter": each.parameter, "entries": each.entries} for label, each in unknowns.items()}
    scene, problems = replace_entry_names({**tables, "unknowns": given}, config.ROWS)
    if problems:
        raise config_error(problems, lambda key: (0, "unknowns"))
    found = scene["unknowns"]
    return {label: each.model_copy(update={"entries": found[label]["entries"]}) for label, each in unknowns.items()}


def _row_of(entry: Any) -> Any:
    """The row in an entry, which may have further indices."""
    return entry[0] if isinstance(entry, list) and entry else entry


def _find_rows(scene: Mapping[str, Any], field: str, rows: Mapping[str, str]) -> Rows:
    """Find the names of the rows of a field."""
    kind, joints = rows.get(field), _tables(scene, JOINTS)
    motors = Rows("motor", _names([each for each in joints if each.get("motor") is not None]), f"[[{JOINTS}]] name")
    if kind == BODIES:
        return Rows(name_bodies(scene).word, given_names(scene), name_naming_key(scene))
    if kind == MOTORS:
        return motors
    if kind in (JOINTS, SPRINGS):
        return Rows(kind.removesuffix("s"), _names(_tables(scene, kind)), f"[[{kind}]] name")
    if field in OF_CHANNELS:
        control = scene.get("control")
        columns = control.get("columns") if isinstance(control, Mapping) else None
        if isinstance(columns, list):
            return Rows("column of the control", [each if isinstance(each, str) else None for each in columns])
        if MOTORS in rows.values():
            return motors
    return Rows(f"row of {field}", ())


def _tables(scene: Mapping[str, Any], section: str) -> list[Mapping[str, Any]]:
    found = scene.get(section)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _names(tables: Sequence[Mapping[str, Any]]) -> list[str | None]:
    return [name if isinstance(name := each.get("name"), str) else None for each in tables]


def _unknown(key: Key, name: str, rows: Rows) -> Problem:
    known = list(filter(None, rows.names))
    if known:
        return Problem(key, f"must be the name or the number of a {rows.word}", name, suggest(name, known))
    where = f", or names in {rows.naming}" if rows.naming else ""
    remedy = f"No {rows.word} has a name: give its number, from 0 on{where}."
    return Problem(key, f"must be the number of a {rows.word}", name, remedy)
