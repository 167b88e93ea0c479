"""Memory for states along time is reused, and never by two arrays at once."""

from __future__ import annotations

import numpy as np

from simphys.simulator import arena

SHAPE = (1024, 1024)


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def test_memory_that_was_given_back_is_used_again() -> None:
    first = arena.empty(SHAPE, np.float64)
    at = address(first)
    first[:] = 1
    del first
    second = arena.empty(SHAPE, np.float64)
    assert address(second) == at and second.shape == SHAPE and second.flags.c_contiguous and second.flags.writeable


def test_memory_in_use_is_nobody_elses() -> None:
    first = arena.empty(SHAPE, np.float64)
    part = first[3:5, ::2]  # a view keeps it in use
    part[:] = 1
    del first
    second = arena.empty(SHAPE, np.float64)
    second[:] = 2
    assert (part == 1).all()


def test_another_size_lets_go_of_what_was_kept() -> None:
    del_me = arena.empty(SHAPE, np.float64)
    del del_me
    other = arena.empty((2048, 1024), np.float64)
    assert not arena._kept and other.nbytes == 2 * 8 * 1024 * 1024


def test_small_arrays_do_not_come_from_the_pool() -> None:
    del_me = arena.empty((3, 4), np.float32)
    assert del_me.dtype == np.float32 and del_me.shape == (3, 4)
    del del_me
    assert not arena._kept.get(48)


def test_an_array_that_owns_its_memory_is_used_again_once_nobody_refers_to_it() -> None:
    first = arena.owned(SHAPE, np.float64)
    first.flags.writeable = False
    at, part = address(first), first[3:5, ::2]
    del first
    second = arena.owned(SHAPE, np.float64)
    assert address(second) != at
    del part
    third = arena.owned(SHAPE, np.float64)
    assert address(third) == at and third.flags.writeable and third.flags.owndata
    assert arena.owned((3, 4), np.float32).flags.owndata


def test_another_shape_lets_go_of_arrays_that_nobody_refers_to() -> None:
    held = arena.owned(SHAPE, np.float64)
    del_me = arena.owned(SHAPE, np.float64)
    del del_me
    other = arena.owned((2048, 1024), np.float64)
    assert [each.shape for each in arena._owned] == [held.shape, other.shape]
