"""Report on the health of a gradient: tables on the terminal, and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from simphys.autograd.errors import StorageError
from simphys.diagnose.health import Health
from simphys.diagnose.health.growth import Rate
from simphys.experiment.scene import Scene
from simphys.plot.fit.health import health as draw
from simphys.record.storage import build_segment, replace_file, to_storable
from simphys.runs.run_files import find_group, find_unit, make_output_folder
from simphys.simulator.events import Event, group_by_kind, select_one_sided

from .report import make_console

FEW = 6
"""Largest number of events that are listed one by one."""
SMOOTHING = (
    "Remedy: average the loss over random changes of the unknowns, which takes all of them into account "
    '(optimizer.smoothing, with method = "adam").'
)
SHORTER = (
    'Remedies: a horizon no longer than that, reached from shorter ones (optimizer.horizon = "growing"); windows of '
    "that length, each with an unknown start (multiple shooting); or, over the whole horizon, a loss averaged over "
    "random changes of the unknowns (optimizer.smoothing)."
)


def print_health(found: Health, *, title: str = "") -> None:
    """Print the findings as tables, and the longest horizon with a usable gradient as a sentence."""
    out = make_console()
    precision = "f32" if found.eps > 1e-10 else "f64"
    summary = Table(
        title=f"{title or 'Adjoint health'}: {_format_span(found, found.steps)}, {precision}", title_justify="left"
    )
    summary.add_column("quantity")
    summary.add_column("found")
    summary.add_row("loss", f"{found.loss:.6g}")
    summary.add_row("growth of the adjoint, back from the end", _format_rate(found.rate, found.units.time))
    summary.add_row("growth of a tangent, forward from the start", _format_rate(found.tangent_rate, found.units.time))
    passes = (
        "not within this horizon"
        if found.noise_step is None
        else f"{_format_span(found, found.noise_step)} from the end"
    )
    summary.add_row(f"the adjoint's growth passes 1/eps = {1 / found.eps:.2g}", passes)
    summary.add_row("first NaN or inf", "none" if found.fault is None else _format_fault(found))
    out.print(summary)
    table = Table(title="Sensitivity of the loss L to each quantity θ", title_justify="left")
    for name in ("quantity", "entries", "vanishing", "largest |θ ∂L/∂θ| / |L|"):
        table.add_column(name, justify="left" if name == "quantity" else "right")
    for each in found.sensitivities:
        lost = "all" if each.vanishing == each.entries else str(each.vanishing or "-")
        size = "θ is 0" if np.isnan(each.largest) else f"{each.largest:.2e}"
        table.add_row(f"{each.name} (start)" if each.of_start else each.name, str(each.entries), lost, size)
    if found.sensitivities:
        out.print(table)
    if found.events:
        out.print(_make_count_table(found.events))
    if doubtful := select_one_sided(found.events):
        out.print(_make_reason_table(doubtful, found.units.time))
    for line in _conclude(found):
        out.print(line, soft_wrap=True)


def _format_span(found: Health, steps: int) -> str:
    return f"{steps} {'step' if steps == 1 else 'steps'} ({steps * found.dt:.4g} {found.units.time})"


def _format_rate(rate: Rate | None, unit: str) -> str:
    if rate is None:
        return "not known"
    return (
        f"{rate.value:+.4g} 1/{unit}, ± {rate.spread:.1g}, fitted from {rate.begin:.4g} {unit} to {rate.end:.4g} {unit}"
    )


def _format_fault(found: Health) -> str:
    fault = found.fault
    assert fault is not None
    where = f"adjoint of {fault.where}" if fault.direction == "backward" else fault.where
    step = "" if fault.step is None else f" at step {fault.step} (t = {fault.step * found.dt:.4g} {found.units.time})"
    by = f", made by {fault.function}" if fault.function else ""
    return f"{fault.direction}: {where} = {fault.value:g}{step}{by}"


def _make_count_table(events: tuple[Event, ...]) -> Table:
    """Make the table of the number of events of each kind, and of the steps in which they happen."""
    table = Table(title="Events of the motion", title_justify="left")
    for name in ("kind", "number", "one-sided", "in steps"):
        table.add_column(name, justify="right" if name in ("number", "one-sided") else "left")
    for kind, alike in group_by_kind(events).items():
        steps = list(dict.fromkeys([event.step for event in alike]))
        listed = ", ".join([str(step) for step in steps[:FEW]])
        listed += f" and {len(steps) - FEW} more, the last {steps[-1]}" if len(steps) > FEW else ""
        table.add_row(kind, str(len(alike)), str(len(select_one_sided(alike)) or "-"), listed)
    return table


def _make_reason_table(events: tuple[Event, ...], unit: str) -> Table:
    """Make the table of the first events at which the gradient is one-sided, with the reasons."""
    left = len(events) - FEW
    caption = f"and {left} more, the last in step {events[-1].step}" if left > 0 else None
    table = Table(
        title="Where the gradient is one-sided", title_justify="left", caption=caption, caption_justify="left"
    )
    for name in ("step", moment := f"time [{unit}]", "kind", "what", "why"):
        table.add_column(name, justify="right" if name in ("step", moment) else "left")
    for event in events[:FEW]:
        table.add_row(str(event.step), f"{event.time:.4g}", event.kind, event.what, event.one_sided)
    return table


def _conclude(found: Health) -> list[str]:
    lines = []
    if found.fault is not None:
        lines.append(found.fault.message)
        if found.fault.direction == "forward" and found.steps:
            lines.append(
                "The tables above are about the motion before that, with a random weighting of its end as the loss."
            )
    if found.vanishing:
        lines.append(
            f"Nothing can be learnt about {', '.join(found.vanishing)}: no effect beyond the rounding of the loss."
        )
    if count := len(select_one_sided(found.events)):
        events = "an event" if count == 1 else f"{count} events"
        lines.append(f"At {events} the gradient is one of several different ones. {SMOOTHING}")
    if found.usable_steps == 0:
        return [*lines, "No horizon has a usable gradient."]
    whole = " (the whole horizon examined)" if found.usable_steps == found.steps else ""
    lines.append(f"Longest horizon with a usable gradient: {_format_span(found, found.usable_steps)}{whole}.")
    if found.usable_steps < found.steps:
        lines.append("Over the whole horizon the gradient is noise, or not finite, and so are the sensitivities above.")
        if found.fault is None:
            lines.append(SHORTER)
    if found.expected_steps is not None:
        lines.append(f"At this rate it would end after about {_format_span(found, found.expected_steps)}.")
    return lines


def write_health(scene: Scene, found: Health) -> tuple[Path, list[Path]]:
    """Write health.h5 and health.png into the scene's output folder; returns the folder and the files.

    Names of files of an experiment end with its own, as in health_left.png.
    Errors: InputError for a folder that cannot be made, StorageError.
    """
    folder = make_output_folder(scene)
    name = f"health_{scene.name.replace(' ', '_')}" if scene.name else "health"
    units = {field: find_unit(scene, field) for field in scene.state.names()}
    write_hdf5(found, folder / f"{name}.h5", units=units, every=scene.config.output.every)
    if not found.steps:
        return folder, [folder / f"{name}.h5"]
    bodies = [field for field in units if find_group(scene, field) == f"particles/nodes/{field}"]
    draw(found, folder / f"{name}.png", title=scene.config.title, units=units, bodies=bodies)
    return folder, [folder / f"{name}.h5", folder / f"{name}.png"]


def write_hdf5(found: Health, path: str | Path, *, units: Mapping[str, str], every: int = 1) -> None:
    """Write the findings as HDF5: log growth at each step, and the adjoint at every `every`-th one.

    `units`: the unit of each field of the state. Errors: StorageError.
    """
    rows = slice(None, None, every)
    rates = {"adjoint": found.rate, "tangent": found.tangent_rate}
    arrays: dict[str, Any] = {
        "growth/time": found.times,
        "growth/log_adjoint": found.log_growth,
        "adjoint/step": np.arange(found.steps + 1)[rows],
        "adjoint/time": found.times[rows],
        **{f"adjoint/{name}": values[rows] for name, values in found.adjoint.items()},
        **{f"rate/{name}": [rate.value, rate.spread, rate.begin, rate.end] for name, rate in rates.items() if rate},
        **_event_columns(found.events),
        "usable_steps": found.usable_steps,
        "eps": found.eps,
    }
    if found.log_tangent_growth is not None:
        arrays["growth/log_tangent"] = found.log_tangent_growth
    attrs = {name: {"unit": found.units.time} for name in arrays if name.endswith("/time")}
    attrs |= {f"adjoint/{name}": {"unit": f"loss/({units.get(name) or 'unit'})"} for name in found.adjoint}
    try:
        replace_file(Path(path), build_segment({name: to_storable(value) for name, value in arrays.items()}, attrs))
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}. Free some space.") from error


def _event_columns(events: tuple[Event, ...]) -> dict[str, Any]:
    """Datasets of equal length, one for each field of the events; none without events."""
    names = [field.name for field in fields(Event)] if events else []
    return {f"events/{name}": [getattr(event, name) for event in events] for name in names}
