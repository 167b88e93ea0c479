"""Errors of motions that blow up, as input errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from simphys.autograd.errors import InputError
from simphys.rollout import BlowUp


@contextmanager
def blow_up_told(who: str, remedy: str = "") -> Iterator[None]:
    """Turn a BlowUp raised inside into an InputError of `who`; `remedy` follows the simulator's own advice."""
    try:
        yield
    except BlowUp as error:
        raise InputError(who, error.constraint, error.found, f"{error.remedy} {remedy}".strip()) from error
