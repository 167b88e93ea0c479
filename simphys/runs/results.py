"""The result of a fit as files: a scene with the found values, and tables of values and covariance."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from simphys import optimize
from simphys._version import __version__
from simphys.assess import Criterion, Uncertainty, worst
from simphys.autograd.errors import StorageError
from simphys.experiment.scene import Scene
from simphys.experiment.unknowns import Block, Unknowns
from simphys.scenefile import ValueSection, flat_entries, to_dict
from simphys.scenefile.toml_text import to_toml

from .estimates import Estimate
from .used_values import Departure, carry, describe_departures, find_departures, in_words

FITTED = "fitted.toml"
RESULTS = (FITTED, "fitted.json", "values.csv", "covariance.csv")
"""Files of a fit, beside those of unknowns with many numbers."""
MOST_NUMBERS = 16
"""Largest number of values of an unknown that stand in fitted.toml itself; more go to a file beside it."""


def write_results(
    folder: Path,
    scene: Scene,
    unknowns: Unknowns,
    result: optimize.Result,
    table: Sequence[Estimate],
    criteria: Sequence[Criterion],
    uncertainty: Uncertainty | None,
) -> None:
    """Write fitted.toml, fitted.json, values.csv and, where there is one, covariance.csv to the folder of a run.

    `scene`: the scene before the fit. Errors: StorageError.
    """
    try:
        _write_scene(folder, scene, unknowns, result, worst(criteria))
        names = [field.name for field in fields(Estimate)]
        _write_table(folder / "values.csv", [names, *([getattr(row, name) for name in names] for row in table)])
        found: dict[str, Any] = {
            "title": scene.config.title,
            "verdict": worst(criteria),
            "criteria": [asdict(each) for each in criteria],
            "values": [asdict(row) for row in table],
        }
        (folder / "covariance.csv").unlink(missing_ok=True)  # may be from an earlier run in this folder
        if uncertainty is not None:
            labels = list(uncertainty.labels)
            standard = uncertainty.in_units(uncertainty.standard.covariance).tolist()
            rows = [[label, *row] for label, row in zip(labels, standard, strict=True)]
            _write_table(folder / "covariance.csv", [["", *labels], *rows])
            found["covariance"] = standard
            found["robust_covariance"] = uncertainty.in_units(uncertainty.robust_covariance).tolist()
            found["correlation"] = uncertainty.correlations.tolist()
        (folder / "fitted.json").write_text(json.dumps(_without_nan(found), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"results in {folder} cannot be written: {reason}. Free some space.") from error


def renew_verdict(folder: Path, criteria: Sequence[Criterion]) -> None:
    """Tell the criteria of a judgement that goes on after the fit in its files, where there are any.

    Errors: StorageError.
    """
    table, scene = folder / "fitted.json", folder / FITTED
    if not (table.exists() and scene.exists()):
        return
    found = json.loads(table.read_text(encoding="utf-8"))
    before, found["verdict"] = found["verdict"], worst(criteria)
    found["criteria"] = [asdict(each) for each in criteria]
    told = "; its verdict: {}.\n".format
    text = scene.read_text(encoding="utf-8").replace(told(before), told(found["verdict"]), 1)
    try:
        table.write_text(json.dumps(_without_nan(found), indent=1) + "\n", encoding="utf-8")
        scene.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"results in {folder} cannot be written: {reason}. Free some space.") from error


def _write_scene(folder: Path, scene: Scene, unknowns: Unknowns, result: optimize.Result, verdict: str) -> None:
    tables = to_dict(scene.config)
    natural = unknowns.natural(result.theta)
    for block in unknowns.blocks:
        label = block.label if block.experiment is None else block.unknown
        section = tables["unknowns"][label]
        found: Any = natural[block.where].tolist()
        if len(found) == 1:
            found = found[0]
        elif len(found) > MOST_NUMBERS:
            name = f"fitted_{block.label}.npy"
            np.save(folder / name, natural[block.where])
            found = name
        value = {key: section[key] for key in ("parameter", "entries", "tied") if key in section} | {"value": found}
        if block.experiment is None:
            section["start"] = found
        else:
            section.pop("start", None)
        experiments = tables.get("experiments", [])
        of_one = [] if block.experiment is None else [experiments[block.experiment]]
        for table in of_one or [tables, *experiments]:
            others = table.get("values", {})
            shape = unknowns.values[block.parameter].shape
            table["values"] = {n: v for n, v in others.items() if not _is_within(v, block, shape)} | {label: value}
    departures = find_departures(scene)
    _carry(folder, tables, departures, unknowns)
    tables["output"]["folder"] += "_fitted"
    files = [str(part.observations.file) for part in scene.parts if part.observations is not None]
    measured = f" to {', '.join(dict.fromkeys(files))}" if files else ""
    others = f"# {in_words(describe_departures(scene, departures))}\n" if departures else ""
    head = (
        f"# Made by simphys {__version__}: the scene {scene.config.title or 'without a title'!r} with the values\n"
        f"# that a fit{measured} has found.\n"
        f"# The run is {folder.resolve()}; its verdict: {verdict}.\n"
        f"{others}"
        "# The section [values] replaces what the sections of the simulator say.\n\n"
    )
    (folder / FITTED).write_text(head + to_toml(tables), encoding="utf-8")


def _carry(folder: Path, tables: dict[str, Any], departures: Sequence[Departure], unknowns: Unknowns) -> None:
    """Add sections of [values] for what the fit used in place of the tables; those of experiments stay told in words.

    An experiment's [values] are laid over the scene's, so that a section of the scene would reach the others, too.
    """
    for each in departures:
        if each.experiment is not None:
            continue
        blocks = [block for block in unknowns.blocks if block.parameter == each.name]
        found = np.concatenate([np.zeros(0, int), *(block.entries for block in blocks)])
        own = {block.label for block in blocks}
        sections = tables.get("values", {})
        others = {name: section for name, section in sections.items() if name not in own}
        made = carry(each, others, found)
        if made is None:
            continue
        label = f"used_{each.name}"
        if len(made["value"]) > MOST_NUMBERS:
            np.save(folder / f"{label}.npy", np.array(made["value"]))
            made["value"] = f"{label}.npy"
        kept = {n: section for n, section in sections.items() if n in own or section["parameter"] != each.name}
        tables["values"] = kept | {label: made}


def _is_within(value: dict[str, Any], block: Block, shape: tuple[int, ...]) -> bool:
    """Return True if an unknown takes the place of a section of [values]."""
    section = ValueSection.model_validate(value)
    if section.parameter != block.parameter:
        return False
    return set(flat_entries(section.as_unknown(), shape).tolist()) <= set(block.entries.tolist())


def _write_table(path: Path, rows: Iterable[Iterable[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def _without_nan(value: Any) -> Any:
    """Replace numbers that JSON does not have by null."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
