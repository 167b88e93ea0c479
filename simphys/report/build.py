"""The report of a run: one HTML file with tables, pictures and a replay, which needs no network."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from simphys._version import __version__
from simphys.autograd.errors import InputError, StorageError
from simphys.plot.style import NotRecorded, number
from simphys.record import Recording, list_parts
from simphys.report.correlation import read_correlation
from simphys.report.pictures import Group, make_groups
from simphys.report.replay import make_replay
from simphys.report.scene_text import to_toml
from simphys.report.tables import cost_rows, count_iterations, result_tables, solver_table, verdict_table, version_table
from simphys.runs.run_files import CERTIFICATE
from simphys.runs.used_values import in_words, read_departures

NAME = "report.html"
T = TypeVar("T")


@dataclass(frozen=True)
class Status:
    """Word on how a run ended, the look of its badge (good, warn, bad), and a sentence."""

    word: str
    look: str
    message: str


def write_report(
    recording: Recording,
    path: str | Path | None = None,
    *,
    certificate: str | None = None,
    on_picture: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the report of a run as one HTML file without outside addresses; return its path.

    The path is report.html in the run's folder unless another is given. `certificate` is the text of a certificate of
    the scene; without it, the one in the run's folder is shown, if there is one. Parts of the run that cannot be read
    are named in the report, and the others shown. `on_picture(done, whole)` is called before each picture.
    Errors: InputError for a run in memory without a path; StorageError if the file cannot be written.
    """
    if path is None and recording.folder is None:
        remedy = "Pass path=FILE.html."
        raise InputError("report", "a run in memory has no folder for the report", "no path", remedy)
    target = Path(path) if path is not None else Path(recording.folder or ".") / NAME
    return save_page(make_page(recording, certificate, on_picture), target)


def save_page(text: str, target: Path) -> Path:
    """Write a page; return its path. Errors: StorageError."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"report {target} cannot be written: {reason}. Name another file, or free space.") from error
    return target


def make_page(
    recording: Recording, certificate: str | None = None, on_picture: Callable[[int, int], None] | None = None
) -> str:
    """Make the text of a report."""
    return render_page(**_collect(recording, certificate, on_picture))


def render_page(**shown: Any) -> str:
    """Make the text of a page of these parts: see page.html."""
    from jinja2 import Environment

    page = files("simphys.report") / "page"
    read = {
        name: (page / name).read_text(encoding="utf-8") for name in ("page.html", "style.css", "page.js", "replay.js")
    }
    template = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(read["page.html"])
    return template.render(
        **shown,
        style=_Safe(read["style.css"]),
        script=_Safe(read["page.js"] + read["replay.js"]),
        version=__version__,
    )


class _Safe(str):
    """Text of ours, not to be escaped (the protocol of markupsafe)."""

    def __html__(self) -> str:
        return self


def _collect(
    recording: Recording, certificate: str | None, on_picture: Callable[[int, int], None] | None
) -> dict[str, Any]:
    """Collect all that the page shows."""
    notes: list[str] = []

    def attempt(what: str, make: Callable[[], T]) -> T | None:
        try:
            return make()
        except NotRecorded as error:
            notes.append(f"{what} {error.constraint}; found {error.found}. {error.remedy}")
        except InputError as error:
            notes.append(f"{what}: {error}")
        except Exception as error:  # a damaged run may hold anything
            notes.append(f"{what} cannot be shown: {error}")
        return None

    def draw() -> tuple[Group, ...]:
        problems: list[Exception] = []
        try:
            return make_groups(recording, problems, on_picture)
        finally:
            notes.extend([f"Not drawn: {problem}" for problem in problems])

    attempt("Notes", lambda: notes.extend(_notes(recording)))
    scene: dict[str, Any] = attempt("The scene", lambda: recording.scene) or {}
    title = str(scene.get("title") or "A run of simphys")
    replays = [
        _describe_replay(replay, title, name)
        for name, own in _motions(recording).items()
        if (replay := attempt(f"The replay of {name}" if name else "The replay", partial(make_replay, own))) is not None
    ]
    shown = {
        "title": title,
        "lead": attempt("The summary", lambda: _lead(recording)) or "",
        "status": attempt("The status", lambda: read_status(recording)) or Status("unknown", "warn", ""),
        "tiles": attempt("The key figures", lambda: _tiles(recording)) or [],
        "replays": replays,
        "results": attempt("The results", lambda: list(result_tables(recording))) or [],
        "correlation": attempt("The correlation", lambda: read_correlation(recording)),
        "pictures": attempt("The pictures", draw) or (),
        "certificate": certificate or attempt("The certificate", lambda: _read_certificate(recording)),
        "making": [
            each
            for each in (
                attempt("The solver", lambda: solver_table(recording)),
                attempt("The versions", lambda: version_table(recording)),
            )
            if each is not None
        ],
        "scene": attempt("The text of the scene", lambda: to_toml(scene)) or "",
        "source": attempt("The kind", lambda: f"a run of kind {recording.kind!r}") or "a run",
        "notes": notes,
        "verdict": attempt("The verdict", lambda: verdict_table(recording)),
    }
    return {**shown, "contents": list(_contents(shown))}


def _contents(shown: dict[str, Any]) -> Iterator[dict[str, str]]:
    names = (
        ("notes", "Please note"),
        ("verdict", "Verdict"),
        ("replays", "Replay"),
        ("results", "Results"),
        ("correlation", "Correlation"),
    )
    for name, title in names:
        if shown[name]:
            yield {"id": {"replays": "motion"}.get(name, name), "title": title}
    for group in shown["pictures"]:
        yield {"id": group.id, "title": group.title}
    if shown["certificate"]:
        yield {"id": "certificate", "title": "Certificate"}
    yield {"id": "making", "title": "How this was computed"}
    yield {"id": "scene", "title": "Scene"}


def _notes(recording: Recording) -> Iterator[str]:
    """Say what is unusual about a run: lost data, another version, an early end."""
    if recording.damage:
        yield recording.damage
    made = recording.provenance.get("simphys")
    if made != __version__:
        yield f"Version {made or 'unknown'} of simphys recorded the run, and version {__version__} made this report."
    if others := read_departures(recording):
        yield in_words(others)
    for name, own in _motions(recording).items():
        where = f" of {name}" if name else ""
        if "motion" not in own:
            yield f"The run holds no motion{where}: it was stopped before the end, or its states were left out."
        elif own.attrs("motion")["status"] != "completed":
            yield f"The motion{where} was not completed: {own.attrs('motion')['message']}."


def _motions(recording: Recording) -> dict[str, Recording]:
    """Return what holds a motion by name: the experiments, or the run itself, which has none."""
    return list_parts(recording) or {"": recording}


def read_status(recording: Recording) -> Status:
    """Describe how a run ended, and whether a part of it is lost."""
    found = _read_end(recording)
    return Status(f"{found.word}, cut off", "bad", found.message) if recording.damage else found


def _read_end(recording: Recording) -> Status:
    if "unknowns" in recording:
        about = recording.attrs("unknowns")
        status, message = str(about["status"]), str(about["message"])
        look = {"converged": "good", "iteration limit": "warn"}.get(status, "bad")
        if "judgement" in recording:
            verdict = str(recording.attrs("judgement")["verdict"])
            look = {"passed": "good", "doubtful": "warn"}.get(verdict, "bad")
            status = f"{status}, {verdict}"
        return Status(status, look, "" if message == status else message)
    ends = [str(own.attrs("motion")["status"]) for own in _motions(recording).values() if "motion" in own]
    if len(ends) == len(_motions(recording)):
        status = next((each for each in ends if each != "completed"), "completed")
        return Status(status, "good" if status == "completed" else "bad", "")
    return Status("unfinished", "bad", "the run was stopped before it ended")


def _lead(recording: Recording) -> str:
    scene: dict[str, Any] = recording.scene
    simulator = str(scene.get("simulator", {}).get("name", "unknown simulator")).replace("_", " ")
    job = "Simulation"
    if recording.kind == "optimize":
        count = len(recording["unknowns/label"]) if "unknowns/label" in recording else 0
        source = (scene.get("observations") or {}).get("file")
        if experiments := scene.get("experiments"):
            source = f"{len(experiments)} recordings"
        job = f"Fit of {count:,} unknowns" if count != 1 else "Fit of one unknown"
        job += f" to {Path(str(source)).name}" if source else " to the terms of a loss"
    parts = [job, f"simulator: {simulator}"]
    first = next(iter(_motions(recording).values()))
    if "motion" in first:
        steps: Any = first.attrs("motion")["steps"]
        dt = float(scene.get("time", {}).get("dt", 0.0))
        unit = recording.units.time
        parts.append(f"{int(steps):,} steps of {dt:g} {unit}, {number(int(steps) * dt)} {unit} in all")
    return " \N{MIDDLE DOT} ".join(parts)


def _tiles(recording: Recording) -> list[dict[str, str]]:
    tiles = []
    if "iterations/loss" in recording and len(loss := recording["iterations/loss"]):
        last: Any = recording.attrs("unknowns")["loss"] if "unknowns" in recording else loss[-1]
        tiles.append({"name": "loss at the end", "value": number(float(last))})
        tiles.append({"name": "iterations", "value": str(count_iterations(recording))})
    if "unknowns/label" in recording:
        tiles.append({"name": "unknowns", "value": f"{len(recording['unknowns/label']):,}"})
    for name, value in cost_rows(recording):
        tiles.append({"name": name.removesuffix(" of the process"), "value": value.partition(",")[0]})
    made = recording.provenance
    tiles.append({"name": "compiler", "value": str(made.get("compiler", "unknown"))})
    return tiles


def _describe_replay(replay: dict[str, Any], title: str, name: str) -> dict[str, Any]:
    """Describe a replay for the page; `name`: of its experiment, if there are several."""
    turn = "Drag, or use the arrow keys, to turn it; " if replay["dim"] == 3 else "Drag to move it; "
    hint = f"{turn}Ctrl and wheel, or + and \N{MINUS SIGN}, change its size; the space bar plays."
    names = ", ".join([str(layer["name"]) for layer in replay["layers"]])
    time = replay["time"]
    whose = f"{title}, {name}" if name else title
    alt = f"Replay of {whose}: {names}, {len(time)} moments from {time[0]:g} to {time[-1]:g} {replay['time_unit']}"
    hint = ". ".join([*(f"{part[0].upper()}{part[1:]}" for part in (replay["remark"], replay["ended"]) if part), hint])
    data = json.dumps(replay, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return {"name": name, "alt": alt, "hint": hint, "data": data}


def _read_certificate(recording: Recording) -> str | None:
    path = None if recording.folder is None else recording.folder / CERTIFICATE
    return path.read_text(encoding="utf-8").strip() if path is not None and path.is_file() else None
