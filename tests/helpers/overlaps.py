"""Launches whose arguments share memory, one of them written: each is declared here, with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from simphys.autograd.kernels.launch import Kernel
from simphys.autograd.kernels.overlap import are_one, overlapping

BLOCKS = "the same array as numbers and as blocks of the width of a register"
OTHER_ELEMENTS = f"{BLOCKS}; an element is read before it is written, by the iteration that writes it"
PART_OF_THE_POOL = "loops of one text get the pool of all fields for each of theirs, and other elements of it"
NOT_PRECONDITIONED = f"{BLOCKS}, and again as what a preconditioner would make of it"
BOTH_MOVE = "velocity carries itself: its adjoint gets the parts of what moves and of what is moved, which both add"

PARTS_APART = "parts of an engine's array, which lie apart"

DECLARED: dict[tuple[str, frozenset[str]], str] = {
    ("add_multiple", frozenset({"target", "x"})): PARTS_APART,
    ("add_rates", frozenset({"target", "u"})): PARTS_APART,
    ("adj_correct", frozenset({"adj_f", "adj_u"})): BOTH_MOVE,
    ("adj_sample", frozenset({"adj_f", "adj_u"})): BOTH_MOVE,
    ("adj_curvature_memory", frozenset({"adj_zeta", "adj_zeta_blocks"})): OTHER_ELEMENTS,
    ("adj_height", frozenset({"extra", "extra_blocks"})): OTHER_ELEMENTS,
    ("adj_log_courant", frozenset({"total", "total_blocks"})): OTHER_ELEMENTS,
    ("adj_slope_memory", frozenset({"adj_psi", "adj_psi_blocks"})): OTHER_ELEMENTS,
    ("adj_velocity", frozenset({"target", "g"})): PARTS_APART,
    ("curvature_memory", frozenset({"extra", "extra_blocks"})): OTHER_ELEMENTS,
    ("curvature_memory", frozenset({"zeta", "new_blocks"})): OTHER_ELEMENTS,
    ("jvp_leap", frozenset({"du", "dbefore", "new_blocks"})): OTHER_ELEMENTS,
    ("leap", frozenset({"u", "before", "new_blocks"})): OTHER_ELEMENTS,
    ("prescribe", frozenset({"target", "u"})): PARTS_APART,
    ("slope_memory", frozenset({"psi", "new_blocks"})): OTHER_ELEMENTS,
    ("step", frozenset({"r.numbers", "r.blocks", "y"})): NOT_PRECONDITIONED,
}
"""Reasons by the name of the kernel and those of its arguments."""


class Overlap(NamedTuple):
    """Arguments of a launch that share memory, one of them written."""

    kernel: str
    arguments: frozenset[str]
    are_one: bool
    """True if they are the same array, element by element."""

    def find_reason(self) -> str:
        """Find the reason why it is right; "" if nobody has declared one."""
        if self.kernel.startswith("loops_of_") and self.are_one:
            return PART_OF_THE_POOL
        owners, fields = zip(*[name.rpartition(".")[::2] for name in self.arguments], strict=True)
        if len(set(owners)) == 1 and set(fields) == {"numbers", "blocks"}:
            return BLOCKS
        return DECLARED.get((self.kernel, self.arguments), "")


@contextmanager
def recorded_overlaps() -> Iterator[set[Overlap]]:
    """Collect the overlaps of all launches inside the context."""
    found: set[Overlap] = set()
    launch, bind = Kernel.__call__, Kernel.bind

    def note(kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        if kernel._has_records and len(arguments) <= len(kernel.parameters):
            arguments = kernel._flatten(arguments, len(arguments))
        values = kernel._check(arguments)
        for shared in overlapping(kernel.arguments, values):
            names = frozenset([kernel.arguments[i].name for i in shared])
            found.add(Overlap(kernel.name, names, are_one(shared, kernel.arguments, values)))

    def launch_noted(kernel: Kernel, *arguments: Any) -> None:
        note(kernel, arguments)
        launch(kernel, *arguments)

    def bind_noted(kernel: Kernel, *arguments: Any) -> Any:
        note(kernel, arguments)
        return bind(kernel, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", launch_noted)
        patch.setattr(Kernel, "bind", bind_noted)
        yield found
