"""Tables of a report, read from the recording of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.record import Recording, list_parts
from simphys.rollout.budget import format_size
from simphys.runs.achieved import with_prefix
from simphys.runs.estimates import Estimate
from simphys.runs.fit_text import HEADS, estimate_rows


@dataclass(frozen=True)
class Table:
    """Rows of text under a caption; `numbers` are the columns that are aligned to the right."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()


def list_unknowns(recording: Recording) -> list[tuple[str, ...]]:
    """List the identified values as rows of text; many entries of one unknown are folded into their range."""
    found = read_estimates(recording)
    return estimate_rows(found) if found else []


def read_estimates(recording: Recording) -> list[Estimate]:
    """Read the identified values of a run and their errors; none of a run without a fit."""
    if "unknowns/label" not in recording:
        return []
    names = ("label", "unit", "start", "value", "standard_error")
    others = ("robust_error", "half_step_change")  # runs of earlier versions have none
    columns = [recording[f"unknowns/{name}"] for name in names]
    missing = np.full(len(columns[0]), np.nan)
    recorded = recording.keys("unknowns")
    columns += [recording[f"unknowns/{name}"] if name in recorded else missing for name in others]
    rows = zip(*columns, strict=True)
    return [
        Estimate(str(label), str(unit), float(start), float(value), float(error), "", float(robust), float(change))
        for label, unit, start, value, error, robust, change in rows
    ]


def result_tables(recording: Recording) -> Iterator[Table]:
    """Make the tables of a fit: unknowns, residuals and errors against known values."""
    if unknowns := list_unknowns(recording):
        caption = "Identified values, each with as many digits as its larger error allows."
        yield Table(caption, HEADS[: len(unknowns[0])], tuple(unknowns), tuple(range(2, len(unknowns[0]))))
    if "achieved/label" in recording:
        columns = (recording[f"achieved/{name}"] for name in ("label", "unit", "start", "distance"))
        aims = tuple(
            (str(label), with_prefix(float(start), str(unit)), with_prefix(float(end), str(unit)))
            for label, unit, start, end in zip(*columns, strict=True)
        )
        caption = "Distance of the motion from the targets of the loss, root mean square."
        yield Table(caption, ("aim", "before the fit", "after it"), aims, (1, 2))
    if rows := tuple(_residual_rows(recording)):
        heads = ("measured", "samples", "RMSE", "stated noise", "RMSE / noise")
        yield Table(
            "Residuals: measured minus predicted. Their size is that of the noise in a good fit.",
            heads,
            rows,
            (1, 2, 3, 4),
        )
    if truths := tuple(_truth_rows(recording)):
        names = ("unknown", "error at the start", "error of the result")
        yield Table("Relative errors against known values.", names, truths, (1, 2))


def verdict_table(recording: Recording) -> Table | None:
    """Make the table of the criteria by which a fit was judged; None for a run without a judgement."""
    if "judgement/name" not in recording:
        return None
    names = ("verdict", "name", "found", "remedy")
    rows = zip(*(recording[f"judgement/{name}"] for name in names), strict=True)
    caption = f"verdict: {recording.attrs('judgement')['verdict']}"
    return Table(caption, ("", "criterion", "found", "advice"), tuple(tuple(map(str, row)) for row in rows))


def _residual_rows(recording: Recording) -> Iterator[tuple[str, ...]]:
    for name, part in list_parts(recording).items():
        yield from [(f"{name}: {label}", *others) for label, *others in _residual_rows(part)]
    if "observations/value" in recording and "fit/predicted" in recording:
        about = recording.attrs("observations")
        weight = recording["observations/weight"]
        residual = recording["observations/value"] - recording["fit/predicted"]
        for column, (label, unit) in enumerate(zip(about["labels"], about["units"], strict=True)):  # type: ignore[call-overload]
            there = (weight[:, column] > 0) & np.isfinite(residual[:, column])
            if there.any():
                yield _residual_row(str(label), str(unit), residual[there, column], weight[there, column])
    if "field_observations/value" in recording and "field_fit/predicted" in recording:
        about = recording.attrs("field_observations")
        weight = recording["field_observations/weight"]
        residual = recording["field_observations/value"] - recording["field_fit/predicted"]
        weight = np.broadcast_to(weight, residual.shape)
        there = (weight > 0) & np.isfinite(residual)
        if there.any():
            yield _residual_row(str(about["field"]), str(about["unit"]), residual[there], weight[there])


def _residual_row(label: str, unit: str, residual: np.ndarray, weight: np.ndarray) -> tuple[str, ...]:
    rmse, ratio = float(np.sqrt(np.mean(residual**2))), float(np.sqrt(np.mean(residual**2 * weight)))
    noise, unit = float(np.median(weight)) ** -0.5, unit if unit != "1" else ""
    return label, f"{residual.size:,}", f"{rmse:.4g} {unit}".rstrip(), f"{noise:.4g} {unit}".rstrip(), f"{ratio:.3g}"


def _truth_rows(recording: Recording) -> Iterator[tuple[str, ...]]:
    attrs = recording.attrs("unknowns") if "unknowns" in recording else {}
    for name, value in attrs.items():
        if name.endswith(": relative error"):
            start: Any = attrs.get(f"{name} of the start", np.nan)
            yield name.removesuffix(": relative error"), f"{100 * start:.3g} %", f"{100 * float(value):.3g} %"  # type: ignore[arg-type]


def solver_table(recording: Recording) -> Table:
    """Make the table of the scene's size, the solver and its cost."""
    scene: dict[str, Any] = recording.scene
    rows = [("simulator", str(scene.get("simulator", {}).get("name", "?")))]
    if "motion" in recording:
        about: dict[str, Any] = recording.attrs("motion")
        dt = f"{scene.get('time', {}).get('dt', float('nan')):g} {recording.units.time}"
        rows.append(("steps", f"{int(about['steps']):,} of {dt}"))
        rows.append(("motion", str(about["status"])))
    if "unknowns" in recording:
        chosen = scene.get("optimizer", {})
        rows.append(("method", str(chosen.get("method", "?"))))
        rows.append(("tolerance", f"{chosen.get('tolerance', float('nan')):g}"))
        rows.append(("horizon", str(chosen.get("horizon", "full"))))
        result: dict[str, Any] = recording.attrs("unknowns")
        rows.append(("status", str(result["status"])))
        rows.append(("loss", f"{result['loss']:.8g}"))
        for name in ("evaluations", "failed_trials"):
            rows += [(name.replace("_", " "), str(result[name]))] if name in result else []
    rows += [("unknowns", f"{len(recording['unknowns/label']):,}")] if "unknowns/label" in recording else []
    if (count := count_iterations(recording)) is not None:
        rows.append(("iterations", str(count)))
    rows += cost_rows(recording)
    return Table("Solver and cost.", ("", ""), tuple(rows))


def count_iterations(recording: Recording) -> int | None:
    """Count the iterations of all stages; None for a run without a search."""
    if "iterations/stage" not in recording:
        return None
    stage = recording["iterations/stage"]
    return int(stage.size - len(np.unique(stage)))  # a stage's first row is its start


def cost_rows(recording: Recording) -> list[tuple[str, str]]:
    """List time and memory of a run, if they are recorded."""
    if "cost" not in recording:
        return []
    cost: dict[str, Any] = recording.attrs("cost")
    rows = [("time", f"{cost['seconds']:.3g} s, {cost['compile_seconds']:.2g} s of it compiling kernels")]
    if "peak_memory" in cost:
        rows.append(("peak memory of the process", format_size(int(cost["peak_memory"]))))
    return rows


def version_table(recording: Recording) -> Table:
    """Make the table of versions, compiler and machine."""
    rows = tuple((str(name), str(value)) for name, value in recording.provenance.items() if name != "note")
    return Table("Versions, compiler and machine.", ("", ""), rows)
