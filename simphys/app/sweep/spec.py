"""Sweep files: a scene, the values that its members have, what is done with each, and where."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from simphys.scenefile.errors import config_error
from simphys.scenefile.loader import absolute, read_tables
from simphys.scenefile.section import Count, Index, Positive, Problem, Section
from simphys.scenefile.validate import validate_sections

LARGEST = 100_000
"""Largest number of members: each has a folder, and all are listed at once."""

Values = dict[str, Any]
"""Values of a member by the key of the scene."""


class RangeSection(Section):
    """Numbers from `low` to `high`, both included, equally far apart, or by equal factors."""

    low: float
    high: float
    count: Count = 2
    scale: Literal["linear", "log"] = "linear"

    def numbers(self) -> list[float]:
        made = np.geomspace if self.scale == "log" else np.linspace
        return [float(number) for number in made(self.low, self.high, self.count)]

    def at(self, fraction: float) -> float:
        """The number at a fraction of the way from `low` to `high`."""
        if self.scale == "log":
            return float(self.low * (self.high / self.low) ** fraction)
        return float(self.low + (self.high - self.low) * fraction)


class SampleSection(Section):
    """Points in a box, one a member. Their order and values depend on the seed alone."""

    method: Literal["sobol", "latin_hypercube", "random"] = "sobol"
    count: Count
    seed: Index = 0
    over: dict[str, RangeSection]

    def rows(self) -> list[Values]:
        from scipy.stats import qmc

        dim = len(self.over)
        if self.method == "random":
            points = np.random.default_rng(self.seed).uniform(size=(self.count, dim))
        elif self.method == "latin_hypercube":
            points = qmc.LatinHypercube(dim, rng=self.seed).random(self.count)
        else:
            doublings = max(self.count - 1, 0).bit_length()
            points = qmc.Sobol(dim, rng=self.seed).random_base2(doublings)[: self.count]
        return [{key: axis.at(x) for (key, axis), x in zip(self.over.items(), point, strict=True)} for point in points]


class EngineSection(Section):
    """Choice of what computes the members.

    processes: new ones on this machine, which stay, so that kernels are compiled once in each; serial: this process;
    dask: a cluster of dask.distributed; slurm: jobs of a SLURM cluster, by submitit.
    options: of dask.distributed.Client, or of submitit's AutoExecutor.update_parameters.
    threads: those of kernels, unless the scene has a number in runtime.threads; and of the numerical libraries of each
    process (OpenMP, BLAS), unless the environment has one.
    gpus: number of GPUs that processes share: each sees one of them alone, by CUDA_VISIBLE_DEVICES.
    scratch: folder on a disk of the worker's own, where members are computed before they are copied to the sweep's.
    walltime: time [s] after which the sweep stops cleanly; by default a minute before the end of a job of SLURM.
    together: number of members that a worker is given at once, to simulate or differentiate them in one launch.
    """

    kind: Literal["processes", "serial", "dask", "slurm"] = "processes"
    workers: Count = 2
    together: Count | None = None
    threads: Count = 1
    gpus: Index = 0
    scratch: str | None = None
    walltime: Positive | None = None
    options: dict[str, Any] = {}


class SweepFile(BaseModel):
    """A sweep."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scene: str
    do: Literal["optimize", "assess", "run", "gradient"] = "optimize"
    folder: str
    overrides: list[str] = []
    grid: dict[str, list[Any] | RangeSection] = {}
    zip: dict[str, list[Any] | RangeSection] = {}
    sample: SampleSection | None = None
    engine: EngineSection = EngineSection()
    attempts: Count = 3
    time_limit: Positive | None = None

    def members(self) -> Iterator[Values]:
        """The values of each member: every combination of the grid's axes, of the zipped rows, and of the samples."""
        axes = [[{key: value} for value in _values(axis)] for key, axis in self.grid.items()]
        if self.zip:
            columns = [_values(axis) for axis in self.zip.values()]
            axes.append([dict(zip(self.zip, row, strict=True)) for row in zip(*columns, strict=True)])
        if self.sample is not None:
            axes.append(self.sample.rows())
        for parts in itertools.product(*axes):
            yield {key: value for part in parts for key, value in part.items()}

    @property
    def keys(self) -> list[str]:
        """Keys of the scene that differ between members."""
        return [*self.grid, *self.zip, *([] if self.sample is None else self.sample.over)]


def override_of(key: str, value: Any) -> str:
    """A value as an override of a scene."""
    return f"{key}={json.dumps(value)}"


def load_sweep(path: str | Path) -> SweepFile:
    """Read and validate a sweep file; the path of its scene is relative to the file. Errors: ConfigError."""
    path = Path(path)
    data, where = read_tables(path)
    data.setdefault("folder", f"runs/{path.stem}")
    sections, problems = validate_sections(SweepFile, data)
    problems += _find_problems(sections)
    if problems:
        raise config_error(problems, where)
    sections["scene"] = absolute(sections["scene"], path.parent)
    return SweepFile.model_construct(**sections)


def make_sweep(tables: Mapping[str, Any]) -> SweepFile:
    """Validate a sweep given as nested tables by a script; the path of its scene is relative to the current folder."""
    data = {"folder": "runs/sweep", **tables}
    sections, problems = validate_sections(SweepFile, data)
    problems += _find_problems(sections)
    if problems:
        raise config_error(problems, lambda key: (0, "sweep"))
    sections["scene"] = absolute(sections["scene"], Path())
    return SweepFile.model_construct(**sections)


def _values(axis: list[Any] | RangeSection) -> list[Any]:
    return axis.numbers() if isinstance(axis, RangeSection) else axis


def _length(axis: list[Any] | RangeSection) -> int:
    return axis.count if isinstance(axis, RangeSection) else len(axis)


def _find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    found = []
    for name in ("grid", "zip"):
        for key, axis in sections.get(name, {}).items():
            if isinstance(axis, list) and not axis:
                found.append(Problem((name, key), "an axis has one value or more", axis, "Add values, or drop it."))
            elif isinstance(axis, RangeSection):
                found += _range_problems((name, key), axis)
    sample = sections.get("sample")
    for key, axis in {} if sample is None else sample.over.items():
        found += _range_problems(("sample", "over", key), axis)
    lengths = {key: _length(axis) for key, axis in sections.get("zip", {}).items()}
    if len(set(lengths.values())) > 1:
        found.append(Problem(("zip",), "its axes have one length", lengths, "Use [grid] for all combinations."))
    counts: dict[tuple[str, ...], int] = {
        ("grid", key): _length(axis) for key, axis in sections.get("grid", {}).items()
    }
    counts |= {("zip",): max(lengths.values())} if lengths else {}
    counts |= {} if sample is None else {("sample", "count"): sample.count}
    if (members := math.prod(counts.values())) > LARGEST:
        largest = max(counts, key=lambda key: counts[key])
        constraint = f"a sweep has at most {LARGEST} members, and this one has {members:.6g}"
        found.append(Problem(largest, constraint, counts[largest], "Take fewer values."))
    keys = [key for name in ("grid", "zip") for key in sections.get(name, {})]
    keys += [] if sample is None else list(sample.over)
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        found.append(Problem(("grid",), "a key varies in one place", twice, "Name it once."))
    if not keys and not {"grid", "zip", "sample"} - sections.keys():
        found.append(Problem(("grid",), "a sweep varies a key of its scene", {}, "Add [grid], [zip] or [sample]."))
    return found


def _range_problems(key: tuple[str, ...], axis: RangeSection) -> list[Problem]:
    if axis.low >= axis.high:
        return [Problem((*key, "high"), f"must be more than low, {axis.low:g}", axis.high, "Exchange or mend them.")]
    if axis.scale == "log" and axis.low <= 0:
        return [Problem((*key, "low"), "must be positive for equal factors", axis.low, 'Use scale = "linear".')]
    return []
