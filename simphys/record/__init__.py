"""A run on disk: HDF5 in the layout of H5MD, readable after a kill at any moment.

    RUN/run.h5              the one file to open: the whole tree, its large arrays living in the segments
    RUN/segments/000001.h5  written once, never changed, referred to by run.h5

Every file is built in memory, written under a temporary name, fsynced and renamed, so that no file is ever seen half
written; run.h5 changes hands from one whole state of the run to the next. Names are relative: a run can be moved.
"""

from simphys.record.recorder import Recorder
from simphys.record.recording import Recording

__all__ = ["Recorder", "Recording"]
