"""A run on disk: HDF5 in the layout of H5MD, readable after a kill at any moment.

    RUN/run.h5              the one file to open; of a complete run all of its data, to be copied or moved alone
    RUN/segments/000001.h5  until then: rows and static datasets, written once, which run.h5 refers to

Every file is written under a temporary name, fsynced and renamed, so that no reader ever meets a half-written one:
run.h5 goes from one whole state of the run to the next. When the run completes, its segments are merged into run.h5
and removed. An interrupted run keeps them, and run.h5 says so in its attribute `note`; names in it are relative, so
that the folder as a whole can be moved. A resumed run begins with the merged file as its first segment.

A run can be recorded in memory, too: MemoryRecorder has the interface of Recorder, and Recording reads from both.
"""

from simphys.record.contents import damage_as_errors
from simphys.record.folder import require_no_fit
from simphys.record.memory import MemoryRecorder
from simphys.record.part import PartRecorder, RunRecorder, list_parts, name_group
from simphys.record.recorder import Recorder, require_no_run
from simphys.record.recording import Recording

AnyRecorder = RunRecorder | PartRecorder

__all__ = [
    "AnyRecorder",
    "MemoryRecorder",
    "PartRecorder",
    "Recorder",
    "Recording",
    "RunRecorder",
    "damage_as_errors",
    "list_parts",
    "name_group",
    "require_no_fit",
    "require_no_run",
]
