"""Check in a separate process in f64, as the precision of a process is fixed when it starts."""

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
    """Scene in a form from which another process can rebuild it."""

    config: dict[str, Any]
    """Tables of the scene file."""
    seed: int
    values: Arrays = field(default_factory=dict)
    """Parameters, state and controls, which a script may have replaced."""
    others: dict[str, Any] = field(default_factory=dict)
    """Other fields of the Scene."""


def in_f64(job: Job) -> Certificate:
    """Check a scene whose tables set f64, in another process. Errors: those of the check."""
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
    """Run the check in the other process; an InputError is returned in place of the certificate."""
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
