"""Motions that blow up: told by who asked for them, and with what can still be done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from simphys.autograd.errors import InputError
from simphys.rollout import BlowUp


@contextmanager
def blow_up_told(who: str, remedy: str = "") -> Iterator[None]:
    """Raise a blow-up inside as a mistake that `who` noticed; `remedy` follows the simulator's own advice."""
    try:
        yield
    except BlowUp as error:
        raise InputError(who, error.constraint, error.found, f"{error.remedy} {remedy}".strip()) from error
