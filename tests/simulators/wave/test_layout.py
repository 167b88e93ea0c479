"""The memory layout of a grid in lines of blocks."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.simulators.wave.layout import BLOCK, Layout

SHAPES = pytest.mark.parametrize("shape", [(1,), (16,), (17,), (5, 15), (3, 4, 33)], ids=str)
HALOS = pytest.mark.parametrize("halo", [1, 2, 4])


@SHAPES
@HALOS
def test_a_cell_lies_at_the_origin_and_its_strides(shape: tuple[int, ...], halo: int) -> None:
    layout = Layout(shape, halo)
    values = np.random.default_rng(0).normal(size=(2, *shape))
    padded = layout.pad(values)
    assert padded.shape == (2, layout.size) and layout.size % BLOCK == 0
    at = layout.origin + sum([i * stride for i, stride in zip(np.indices(shape), layout.strides, strict=True)])
    np.testing.assert_array_equal(padded[:, at], values)
    np.testing.assert_array_equal(layout.view_cells(padded), values)
    assert np.shares_memory(layout.view_cells(padded), padded)
    padded[:, at] = 0
    assert not padded.any()


@SHAPES
@HALOS
def test_lines_begin_at_blocks_and_are_found_by_their_number(shape: tuple[int, ...], halo: int) -> None:
    layout = Layout(shape, halo)
    s1, s2, lines2, origin, blocks = (
        {**layout.numbers("grid"), **layout.count_lines()}[name]
        for name in ("grid_1", "grid_2", "lines2", "grid_begin", "blocks")
    )
    numbers = layout.view_cells(np.arange(layout.size)).reshape(-1, shape[-1])
    line = np.arange(layout.lines)
    np.testing.assert_array_equal(origin + line // lines2 * s1 + line % lines2 * s2, numbers[:, 0])
    assert (numbers[:, 0] % BLOCK == 0).all()
    assert (blocks - 1) * BLOCK < shape[-1] <= blocks * BLOCK


@SHAPES
@HALOS
def test_halos_lie_within_the_array_and_apart_from_cells(shape: tuple[int, ...], halo: int) -> None:
    """All numbers that differences or whole blocks reach lie in the array, and are not cells of other lines."""
    layout = Layout(shape, halo)
    numbers = layout.view_cells(np.arange(layout.size))
    for axis, stride in enumerate(layout.strides):
        sources_and_receivers = (
            np.take(numbers, [0], axis) - halo * stride,
            np.take(numbers, [-1], axis) + halo * stride,
        )
        for beyond in sources_and_receivers:
            assert beyond.min() >= 0 and beyond.max() < layout.size
        for k in range(1, halo + 1):
            low, high = np.take(numbers, [0], axis) - k * stride, np.take(numbers, [-1], axis) + k * stride
            assert not np.isin([low, high], numbers).any()
    first = numbers.reshape(-1, shape[-1])[:, 0]
    assert (first + layout.blocks * BLOCK + halo <= layout.size).all()
    np.testing.assert_array_equal(np.diff(first) >= layout.blocks * BLOCK + 2 * halo, True)
