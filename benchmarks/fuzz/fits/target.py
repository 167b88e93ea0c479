"""Random fits as a target of `python -m benchmarks.fuzz`: a case is a scene, what is unknown, and features of a fit."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError

from .systems import SYSTEMS, System

SAMPLES = 40
"""Samples of a recording, about."""
FAR = 6.0
"""Standard errors beyond which a value that passed is wrong."""
BIASED = {"regularization", "final state", "robust"}
"""Features with which the least loss is not where the truth is, or errors mean something else."""

Tables = dict[str, Any]


class Wrong(Exception):
    """A fit that passed with values far from the truth, or whose predictions are not those of its motion."""


def _every_channel(tables: Tables, **keys: Any) -> None:
    for channel in tables["observations"]["channels"]:
        channel.update(keys)


def _sensor(chance: random.Random, tables: Tables) -> None:
    name = chance.choice(["gain", "offset", "delay"])
    start = {"gain": 1.05, "offset": 0.01, "delay": 0.3 * tables["time"]["dt"]}[name]
    tables["unknowns"]["sensor"] = {"parameter": f"channel_{name}", "entries": [0], "start": start}


def _late(chance: random.Random, tables: Tables) -> None:
    """Times that count from earlier: the channels are late by as much."""
    _every_channel(tables, delay=2.5 * tables["time"]["dt"])
    tables["observations"]["begin"] = -2.5 * tables["time"]["dt"]


def _without_sigma(chance: random.Random, tables: Tables) -> None:
    for channel in tables["observations"]["channels"]:
        del channel["sigma"]


def _two_recordings(chance: random.Random, tables: Tables) -> None:
    tables["experiments"] = [{"name": "first"}, {"name": "second"}]
    tables["unknowns"]["sought"]["experiments"] = chance.choice(["shared", "each"])


def _set(section: str, **keys: Any) -> Callable[[random.Random, Tables], None]:
    return lambda chance, tables: tables.setdefault(section, {}).update(copy.deepcopy(keys))


FEATURES: dict[str, Callable[[random.Random, Tables], None]] = {
    "robust": lambda chance, tables: tables.update(
        loss={"kind": chance.choice(["huber", "soft_l1", "cauchy"]), "delta": 2.0}
    ),
    "student": _set("loss", kind="student_t", freedom=4.0),
    "no sigma": _without_sigma,
    "unknown sigma": lambda chance, tables: _every_channel(tables, sigma="unknown"),
    "memory": lambda chance, tables: _every_channel(
        tables, correlation_time=chance.choice(["unknown", 2 * tables["time"]["dt"]])
    ),
    "relative": lambda chance, tables: _every_channel(tables, relative=0.01),
    "every": _set("observations", every=2),
    "held out": lambda chance, tables: tables["observations"].update(
        validation={"kind": chance.choice(["time", "blocks"]), "part": 0.25}
    ),
    "growing": _set("optimizer", horizon="growing"),
    "lbfgs": _set("optimizer", method="lbfgs"),
    "adam": _set("optimizer", method="adam", iterations=20),
    "smoothed": _set("optimizer", method="adam", iterations=5, smoothing={"radius": 0.02, "samples": 4}),
    "f32": _set("runtime", precision="f32"),
    "budget": _set("runtime", memory="1MB"),
    "regularization": _set("loss", terms=[{"kind": "regularization", "unknown": "sought", "weight": 1.0}]),
    "sensor": _sensor,
    "late": _late,
    "two recordings": _two_recordings,
    "log": lambda chance, tables: tables["unknowns"]["sought"].update(transform="log"),
    "bounds": lambda chance, tables: tables["unknowns"]["sought"].update(bounds=[0.0, 1e6]),
}


class FitTarget:
    """Fits of one system."""

    def __init__(self, name: str, folder: Path) -> None:
        from simphys.experiment.scene import build_scene
        from simphys.scenefile import from_dict

        self._system: System = SYSTEMS[name]
        self._folder = folder
        self._true = build_scene(from_dict(copy.deepcopy(self._system.tables)))
        self._values = {
            field: values
            for record in (self._true.params, self._true.state)
            for field, values in record.arrays().items()
            if values.size
        }
        self._seen, self._sigma = self._record()
        with suppress(InputError):  # a field that has no effect is refused
            self._use(self._make_tables(random.Random(0), next(iter(self._values))), frozenset())

    def _record(self) -> tuple[Any, list[float]]:
        """Simulate the recording; return its columns without noise, and the noise of each channel."""
        states, steps = self._true.rollout().states, self._true.steps
        rows = np.arange(0, steps + 1, max(1, steps // SAMPLES))
        columns = []
        for field, place, axis in self._system.channels:
            along = np.asarray(getattr(states, field).data)[rows]
            found = along[(slice(None), *np.atleast_1d(place))]
            columns.append(found if found.ndim == 1 else found[:, axis])
        sigma = [float(self._system.sigma * np.abs(column).max()) for column in columns]
        return np.column_stack([rows * self._true.dt, *columns]), sigma

    def _make_tables(self, chance: random.Random, field: str) -> Tables:
        """Make a scene in which some of a field is sought, from somewhat off."""
        values = self._values[field]
        noisy = self._seen.copy()
        random_noise = np.random.default_rng(chance.randrange(2**32))
        noisy[:, 1:] += np.array(self._sigma) * random_noise.standard_normal(noisy[:, 1:].shape)
        file = self._folder / "recording.txt"
        np.savetxt(file, noisy)
        seen = zip(self._system.channels, self._sigma, strict=True)
        channels = [
            {"column": 1 + i, "field": of, "node": place, "axis": axis, "unit": "1", "sigma": sigma or 1.0}
            for i, ((of, place, axis), sigma) in enumerate(seen)
        ]
        sought: Tables = {"parameter": field}
        if values.shape and values.size > 4 and np.ptp(values) == 0:
            sought["tied"] = True
        elif values.shape:
            place = np.unravel_index(chance.randrange(values.size), values.shape)
            sought["entries"] = [[int(each) for each in place]]
            values = values[place]
        sought["start"] = float(np.ravel(values)[0]) * 1.03 or 0.01
        return {
            **copy.deepcopy(self._system.tables),
            "observations": {"file": str(file), "time": 0, "channels": channels},
            "unknowns": {"sought": sought},
            "optimizer": {"iterations": 40},
        }

    def make_case(self, chance: random.Random) -> tuple[str, Callable[[], Any]]:
        field = chance.choice(list(self._values))
        tables = self._make_tables(chance, field)
        names = chance.sample(list(FEATURES), chance.randrange(4))
        for name in names:
            FEATURES[name](chance, tables)
        words = f"{field} is unknown; {', '.join(names) or 'no more features'}"
        return words, lambda: self._use(tables, frozenset(names))

    def _use(self, tables: Tables, features: frozenset[str]) -> None:
        import simphys
        from simphys.experiment.scene import build_scene
        from simphys.experiment.trajectory import compute_trajectory
        from simphys.scenefile import from_dict

        scene = build_scene(from_dict(tables))
        for part in scene.parts:
            if not part.config.runtime.limited:
                alone, whole = (
                    np.asarray(part.predict(compute_trajectory(part, only_seen=only)).data) for only in (True, False)
                )
                if not np.allclose(alone, whole, rtol=1e-4, atol=1e-6 * np.abs(whole).max(initial=0)):
                    raise Wrong(f"a fit predicts {np.abs(alone - whole).max():.3g} apart from the motion")
        fit = simphys.identify(scene)
        if fit.verdict == "passed" and not BIASED & features:
            self._require_truth(tables, fit)

    def _require_truth(self, tables: Tables, fit: Any) -> None:
        sought = tables["unknowns"]["sought"]
        values = self._values[sought["parameter"]]
        truth = float(values[tuple(sought["entries"][0])] if "entries" in sought else np.ravel(values)[0])
        for row in fit.unknowns:
            if row.label.startswith("sought") and np.isfinite(row.larger_error):
                apart = abs(row.value - truth)
                if apart > FAR * row.larger_error + 1e-5 * abs(truth):
                    raise Wrong(f"passed with {row.value:.6g} +- {row.larger_error:.2g}, the truth is {truth:.6g}")
