"""Sweeps: one scene with many values, each member a run of its own, on any engine that takes functions.

    FOLDER/members/3f/3f9c.../member.json   the result of a member, once it is complete
    FOLDER/members/3f/3f9c.../run.h5        its run
    FOLDER/table.csv                        a row for each member

A member is named by the hash of its scene, its values, what is done with it, and the versions that its result depends
on. Its result is written under a temporary name and renamed, so that it is there as a whole or not at all; and whoever
works on a member holds a lock on its folder (flock, which NFS version 4 and cluster file systems pass on to other
machines). So any number of processes, on any machines, may die at any moment, and the sweep is run again: it does what
is missing, and no member twice.
"""

from .run import sweep
from .table import SweepTable

__all__ = ["SweepTable", "sweep"]
