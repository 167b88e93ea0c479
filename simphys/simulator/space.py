"""Space of a model: the number of its dimensions, from a grid or a box."""

from __future__ import annotations


class OnGrid:
    """A model on a regular grid."""

    cells: tuple[int, ...]

    @property
    def dim(self) -> int:
        """Number of space dimensions."""
        return len(self.cells)


class InBox:
    """A model of particles in a box, whose axes are periodic or open."""

    box: tuple[float, ...]

    @property
    def dim(self) -> int:
        """Number of space dimensions."""
        return len(self.box)
