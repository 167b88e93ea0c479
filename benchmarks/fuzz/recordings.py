"""Run folders, damaged: cut, flipped bits, other versions, links to other files, sizes that nothing could hold."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError

from ..compare import ROOT
from .mutations import VALUES, damage, mutate

RUNS: dict[str, tuple[str, list[str], int | None]] = {
    "fit": ("mass_spring/air_track", ["time.dt=0.01", "optimizer.iterations=4", "output.every=50"], None),
    "interrupted": ("mass_spring/air_track", ["time.dt=0.01", "optimizer.iterations=4", "output.every=50"], 2),
    "bodies": ("mass_spring/jelly", ["geometry.lattice.shape=[3,3,3]", "time.dt=1e-3", "output.every=100"], None),
    "fields": ("heat/source", ["optimizer.iterations=2"], None),
    "motion": ("rigid/bounce", ["output.every=20"], None),
}
"""Scene and overrides of each run, and the iteration after which it is interrupted."""


def record_run(name: str, folder: Path) -> Any:
    """Record a run in a folder; return its scene."""
    from simphys.app.identification import IdentificationInterrupted
    from simphys.app.workflow import identify, simulate
    from simphys.experiment.scene import load_scene

    path, overrides, last = RUNS[name]
    scene = load_scene(ROOT / "scenes" / f"{path}.toml", [*overrides, f"output.folder={folder}"])

    def stop(record: Any) -> None:
        if last is not None and record.index >= last:
            raise KeyboardInterrupt

    if not scene.config.unknowns:
        simulate(scene, folder=folder)
        return scene
    try:
        identify(scene, folder=folder, on_iteration=stop)
    except IdentificationInterrupted:
        assert last is not None
    return scene


class RunTarget:
    """The folder of a run. A case damages one of its files, reads all data, and then does one of the uses."""

    def __init__(self, name: str, folder: Path) -> None:
        self._whole, self._folder, self._out = folder / "whole", folder / "run", folder / "out"
        shutil.rmtree(self._whole, ignore_errors=True)
        self._scene = record_run(name, self._whole)
        self._uses = [read_all, plot, report, *(_export(kind) for kind in ("npz", "csv", "vtkhdf")), compare, assess]
        if self._scene.config.unknowns:
            self._uses += [self._resume, self._resume]
        for use in self._uses:  # as it is, and what is compiled and imported once
            self._copy()
            with suppress(InputError):  # an interrupted run has no motion to export
                use(self._folder, self._out)

    def _copy(self) -> None:
        for folder in (self._folder, self._out):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._whole, self._folder)

    def _resume(self, folder: Path, _: Path) -> None:
        from simphys.app.workflow import identify

        identify(self._scene, folder=folder, resume=True)

    def make_case(self, chance: random.Random) -> tuple[str, Callable[[], Any]]:
        self._copy()
        file = chance.choice(sorted(self._folder.rglob("*.h5")))
        change = chance.choice(CHANGES)
        words = change(file, chance)
        use = chance.choice(self._uses)
        return f"{words} of {file.relative_to(self._folder)}, {use.__name__}", lambda: use(self._folder, self._out)


def read_all(folder: Path, _: Path) -> None:
    """Read each dataset and each attribute, and what the recording says of itself."""
    from simphys.record import Recording

    recording = Recording(folder)
    _read_below(recording, "")
    (recording.kind, recording.scene, recording.provenance, repr(recording), recording._repr_html_())


def _read_below(recording: Any, group: str) -> None:
    for name in recording.keys(group):
        path = f"{group}/{name}".lstrip("/")
        recording.attrs(path)
        _read_below(recording, path)
        if not recording.keys(path):
            with suppress(KeyError):  # of a group without datasets
                recording[path]


def plot(folder: Path, out: Path) -> None:
    from simphys.plot import all_figures
    from simphys.record import Recording

    all_figures(Recording(folder), out)


def report(folder: Path, out: Path) -> None:
    from simphys.record import Recording
    from simphys.report import write_report

    write_report(Recording(folder), out / "report.html")


def _export(kind: str) -> Callable[[Path, Path], None]:
    def export(folder: Path, out: Path) -> None:
        from simphys.record import Recording
        from simphys.runs.export import export_run

        export_run(Recording(folder), out, kind)

    export.__name__ = f"export to {kind}"
    return export


def compare(folder: Path, _: Path) -> None:
    from simphys.app.compare_runs import compare_runs
    from simphys.record import Recording

    list(compare_runs(Recording(folder), Recording(folder.with_name("whole"))))


def assess(folder: Path, _: Path) -> None:
    from simphys.app.assessment import load_scene_or_run

    load_scene_or_run(folder)


def _cut(file: Path, chance: random.Random) -> str:
    size = chance.randrange(file.stat().st_size)
    with file.open("r+b") as opened:
        opened.truncate(size)
    return f"the first {size} bytes"


def _flip(file: Path, chance: random.Random) -> str:
    content = bytearray(file.read_bytes())
    place, bit = chance.randrange(len(content)), chance.randrange(8)
    content[place] ^= 1 << bit
    file.write_bytes(content)
    return f"bit {bit} of byte {place}"


def _damage(file: Path, chance: random.Random) -> str:
    file.write_bytes(damage(file.read_bytes(), chance))
    return "damaged bytes"


def _lose(file: Path, chance: random.Random) -> str:
    """Put something else in its place."""
    file.unlink()
    kind = chance.choice(("nothing", "a folder", "an empty file", "a link to itself", "a text", "a pipe"))
    match kind:
        case "a folder":
            file.mkdir()
        case "an empty file":
            file.touch()
        case "a link to itself":
            file.symlink_to(file)
        case "a text":
            file.write_text("no HDF5")
        case "a pipe":
            os.mkfifo(file)
    return f"{kind} in place"


def _with_hdf5(change: Callable[[Any, str, random.Random], str]) -> Callable[[Path, random.Random], str]:
    """A change of a dataset, valid for HDF5, under right checksums."""

    def changed(file: Path, chance: random.Random) -> str:
        import h5py

        names: list[str] = []
        with h5py.File(file, "r+") as opened:
            opened.visititems_links(lambda path, link: names.append(path))
            return change(opened, chance.choice(sorted(names)), chance)

    return changed


def _link(file: Any, name: str, chance: random.Random) -> str:
    import h5py

    del file[name]
    links = ("/dev/zero", "/etc/passwd", "../whole/run.h5", "nowhere.h5", "segments/000001.h5", file.filename)
    kind = chance.choice((*links, "soft"))
    file[name] = h5py.SoftLink(f"/{name}") if kind == "soft" else h5py.ExternalLink(kind, f"/{name}")
    return f"{name} as a link to {kind}"


def _declare(file: Any, name: str, chance: random.Random) -> str:
    """Declare a size that the file does not hold."""
    rows = chance.choice((0, 1, 10**6, 10**9, 2**40, 2**62))
    shape = (rows, *chance.choice(((), (2,), (0,), (1000,))))
    dtype = "u1" if rows > 2**40 else chance.choice(("f8", "i8", "u1", "S100", "f4"))
    shape = shape[:1] if rows > 2**40 else shape
    del file[name]
    chunks = None if 0 in shape else (1, *shape[1:])
    file.create_dataset(name, shape=shape, dtype=dtype, chunks=chunks)
    return f"{name} declared as {shape} of {dtype}"


def _exchange(file: Any, name: str, chance: random.Random) -> str:
    """Put another dataset in its place: another shape, type or range."""
    old = np.asarray(file[name][()]) if hasattr(file[name], "shape") and file[name].dtype.kind in "biuf" else None
    del file[name]
    kind = chance.choice(("removed", "nan", "short", "text", "scalar", "complex", "huge", "a group", "objects"))
    values: Any = {
        "nan": np.full(3 if old is None else old.shape, np.nan),
        "short": np.zeros(1) if old is None else old[:1] if old.ndim else old,
        "text": np.array([b"x" * 10] * 3),
        "scalar": np.float64(1.0),
        "complex": np.zeros(3, complex),
        "huge": np.full((2, 2) if old is None else old.shape, 1e308),
    }.get(kind)
    if kind == "a group":
        file.create_group(name)
    elif kind == "objects":
        file[name] = ["text", "of any length"]
    elif values is not None:
        file[name] = values
    return f"{name}: {kind}"


def _rename_attrs(file: Any, name: str, chance: random.Random) -> str:
    """Change an attribute, versions among them."""
    owners = [owner for owner in (file, *(file[each] for each in file)) if len(owner.attrs)]
    owner = chance.choice(owners) if owners else file
    key = chance.choice([*owner.attrs] or ["simphys"])
    value: Any = chance.choice(("99.0", "", "x" * 3000, np.nan, 10**18, [1, 2], np.zeros((2, 2))))
    owner.attrs[key] = value
    return f"{owner.name} {key} = {str(value)[:20]}"


def _mutate_text(file: Any, name: str, chance: random.Random) -> str:
    """Mutate the text of the index, or of the scene, as JSON."""
    name = chance.choice([each for each in ("segments", "scene") if each in file] or [name])
    try:
        text = json.loads(file[name][0])
    except Exception:
        return _exchange(file, name, chance)
    mutated, words = mutate(text if isinstance(text, dict) else {"x": text}, chance)
    if chance.random() < 0.05:
        mutated = chance.choice(VALUES)
    del file[name]
    file[name] = np.array([json.dumps(mutated).encode("utf-8", "surrogatepass")])
    return f"{name}: {words}"


CHANGES: tuple[Callable[[Path, random.Random], str], ...] = (
    *(_cut, _cut, _flip, _flip, _flip, _damage, _lose),
    *(_with_hdf5(change) for change in (_link, _declare, _exchange, _exchange, _rename_attrs, _mutate_text)),
    _with_hdf5(_mutate_text),
)
