"""Forms in which an engine goes through its loops, by the size of a member, the number of members, and the device.

| form | on a CPU | on a GPU |
| --- | --- | --- |
| time | a launch has all steps; a thread goes through all loops of a member | likewise: at most GPU_SERIAL elements |
| launches | launches for each step; threads share each loop | a launch has several steps (`count_steps`) |
| blocks | | a launch has all steps; a block of threads has a member (`choose_lanes`) |

Particles on a grid go by pieces, see pieces.py, and the loops of long steps share kernels, see shared_loops.py: all of
them in launches.
"""

from __future__ import annotations

from typing import Literal

from simphys.autograd import runtime
from simphys.substep.program import Program

Form = Literal["time", "launches", "blocks"]

GPU_SERIAL = 64
"""Largest work [elements] of a step for which a GPU spends one thread on a batch member."""
BLOCK_ARCHS = {"cuda"}
"""Devices whose barriers order memory that all threads of a block share."""
BLOCK_ELEMENTS = 64**2
"""Largest size of a loop for which a GPU spends one block of threads on a batch member, and goes through time in it."""
BLOCK_US = 20.0
"""Largest serial cost [us] of a step, approximately, for which that is faster than launches, for one member."""
BLOCK_MEMBERS = 64
"""Number of members that fill a GPU with blocks, whatever a step costs."""
LEAST_LANES, MOST_LANES = 32, 128
"""Threads of a block: a power of two between these."""
MOST_STEPS = 32
"""Largest number of steps whose loops are written out one after the other in a kernel: a power of two."""
MOST_LINES = 480
"""Largest number of lines of such a kernel: compiling takes as long as the text."""
FEWEST_LAUNCHES = 4
"""Least number of launches in a row that such a kernel is compiled for."""


def count_steps(*, lines: int) -> int:
    """Count the steps of so many lines that go in a kernel: a power of two, for pieces of a rollout are such, too."""
    fit = max(MOST_LINES // max(lines, 1), 1)
    return min(MOST_STEPS, 1 << (fit.bit_length() - 1))


def choose_lanes(program: Program, *, work_us: float, members: int) -> int:
    """Choose the threads of the block of a member, where it beats launches of loops; 0 where it does not."""
    if runtime.settings().arch not in BLOCK_ARCHS or program.has_operations:
        return 0
    largest = max([op.domain.size for op in program.ops])
    if largest > BLOCK_ELEMENTS or not (work_us <= BLOCK_US or members >= BLOCK_MEMBERS):
        return 0
    return count_lanes(program)


def count_lanes(program: Program) -> int:
    """Count the threads of a block: about as many as the largest loop has elements."""
    largest = max([op.domain.size for op in program.ops])
    return min(MOST_LANES, max(LEAST_LANES, 1 << (largest - 1).bit_length()))
