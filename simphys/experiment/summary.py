"""A scene in six lines, and as a table for notebooks."""

from __future__ import annotations

from pathlib import Path

from simphys.autograd.look.html import html_table
from simphys.simulator import Array, Record
from simphys.simulator.summary import describe_briefly, describe_field, documented_units, join_within

from .observe import Observations
from .setup import Setup


def describe_setup(setup: Setup) -> str:
    """Describe a set-up: title, simulator and horizon; parameters; state; unknowns; measurement and loss; runtime."""
    config = setup.config
    name, unit, units = config.simulator.name, setup.units.time, find_units(setup)
    many = "" if setup.members is None else f", {setup.members} experiments at once"
    title = f"{config.title}: " if config.title else ""
    lines = [
        f"Scene {title}{name}, {setup.steps:,} steps x {setup.dt:g} {unit} = {setup.steps * setup.dt:.4g} {unit}{many}",
        "  parameters  " + join_within([describe_briefly(n, v, units.get(n, "")) for n, v in _arrays(setup.params)]),
        "  state       " + join_within([describe_briefly(n, v, units.get(n, "")) for n, v in _arrays(setup.state)]),
        "  unknowns    " + (join_within(_unknowns(setup)) or "none"),
        "  compared    " + join_within(_comparisons(setup)),
        f"  runtime     {config.runtime.arch}, {config.runtime.precision}, threads {config.runtime.threads}",
    ]
    return "\n".join(lines)


def setup_table(setup: Setup) -> str:
    """Make an HTML table of a set-up: a row for each field, with shape, unit, mean, spread and range."""
    units = find_units(setup)
    unknown = {about.parameter for about in setup.config.unknowns.values()}
    rows = []
    for kind, record in (("parameter", setup.params), ("state", setup.state)):
        for name, values in _arrays(record):
            text = describe_field("", values).lstrip()
            shape, _, numbers = text.rpartition(": ") if ": " in text else text.rpartition("= ")
            rows.append((kind, name, shape, units.get(name, ""), numbers, "unknown" if name in unknown else ""))
    return html_table(describe_setup(setup).partition("\n")[0], ("", "name", "shape", "unit", "values", ""), rows)


def find_units(setup: Setup) -> dict[str, str]:
    """Find the units of fields that are known: of grids, of the model, of unknowns, and of measured channels.

    Those that the simulator documents are left out where the scene gives other units to some of its fields.
    """
    convert = setup.units.convert
    units = {name: convert(unit) for name, unit in (getattr(setup.model, "units", None) or {}).items()}
    if setup.grid is not None:
        units |= {name: convert(unit) for name, unit in setup.grid.fields.items()}
    units |= {about.parameter: about.unit for about in setup.config.unknowns.values() if about.unit}
    if isinstance(setup.observations, Observations):
        seen = [channel for channel in setup.observations.channels if channel.kind == "component"]
        units |= {channel.field: channel.unit for channel in seen if channel.unit}
    documented = documented_units(setup.model.Params) | documented_units(setup.model.State)
    documented = {name: convert(unit) for name, unit in documented.items()}
    both = [name for name in units.keys() & documented.keys() if units[name] and documented[name]]
    agrees = all(units[name] == documented[name].replace("/rad", "") for name in both)
    return documented | units if agrees else units


def _arrays(record: Record) -> list[tuple[str, Array]]:
    return [(name, values) for name, values in record.arrays().items() if values.size]


def _unknowns(setup: Setup) -> list[str]:
    values = setup.values()
    made = []
    for label, about in setup.config.unknowns.items():
        shape = list(values[about.parameter].shape) if about.parameter in values else []
        size = "" if about.tied or not shape or about.entries is not None else f" {shape}"
        made.append(f"{label}{size}{f' {about.unit}' if about.unit else ''}")
    return made


def _comparisons(setup: Setup) -> list[str]:
    seen = setup.observations
    made = [f"loss term {term.kind}" for term in setup.config.loss.terms]
    if isinstance(seen, Observations):
        plural = "" if len(seen.channels) == 1 else "s"
        made.insert(0, f"{Path(seen.file).name}: {len(seen.times)} times, {len(seen.channels)} channel{plural}")
    elif seen is not None:
        made.insert(0, f"{Path(seen.file).name}: {seen.field} at {len(seen.times)} times")
    return made or ["with nothing"]
