"""A check in a process of its own, in f64: the precision of a process is fixed when it starts."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Arrays

from .certificate import Certificate


@dataclass(frozen=True)
class Job:
    """A scene, as another process can make it again."""

    config: dict[str, Any]
    """Its tables."""
    seed: int
    values: Arrays = field(default_factory=dict)
    """Parameters, state and controls that a script may have exchanged."""
    others: dict[str, Any] = field(default_factory=dict)
    """Further fields of the Scene."""


def in_f64(job: Job) -> Certificate:
    """The certificate of a scene whose tables ask for f64. Errors: those of the check."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("job", "found")]
        files[0].write_bytes(pickle.dumps(job))
        program = "import sys; from simphys.diagnose.check.process import work; work(*sys.argv[1:])"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        subprocess.run([sys.executable, "-c", program, *map(str, files)], env=environment, check=True)
        found = pickle.loads(files[1].read_bytes())
    if not isinstance(found, Certificate):
        raise InputError(*found)
    return found


def work(job_file: str, found_file: str) -> None:
    """What the other process does; a user's mistake is handed back like a certificate."""
    from simphys.experiment.scene import build_scene
    from simphys.scenefile import from_dict

    from .scene import check_scene

    job: Job = pickle.loads(Path(job_file).read_bytes())
    try:
        scene = build_scene(from_dict(job.config))
        changed: dict[str, Any] = {}
        for part in ("params", "state", "controls"):
            record = getattr(scene, part)
            if record is None:
                continue
            values = {name: tensor(job.values[name]) for name in record.names() if name in job.values}
            changed[part] = record.replace(**values)
        found: Any = check_scene(replace(scene, **changed, **job.others), seed=job.seed)
    except InputError as error:
        found = error.who, error.constraint, str(error.found), error.remedy
    Path(found_file).write_bytes(pickle.dumps(found))
