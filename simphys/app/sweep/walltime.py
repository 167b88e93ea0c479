"""The end of the time that a sweep has: its own walltime, or that of the SLURM job in which it runs."""

from __future__ import annotations

import os
import time

MARGIN_S = 60.0
"""Time before the end of a SLURM job in which members stop, and what they have is written [s]."""


def is_over(ends: float | None) -> bool:
    """True once the sweep has to stop, at `ends` by `time.time()` [s] or with this process's SLURM job."""
    job = os.environ.get("SLURM_JOB_END_TIME", "")
    last = float(job) - MARGIN_S if job.isdecimal() else None
    return any([end is not None and time.time() > end for end in (ends, last)])
