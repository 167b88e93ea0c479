"""Wide kernels load and store whole vectors: they compute the same, and refuse arrays that are not aligned."""

from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import InputError, kernel, runtime
from simphys.autograd.kernels.alignment import ALIGNMENT, aligned_empty, aligned_zeros

ti = runtime.ti
real = runtime.real()
dtype = runtime.real_dtype()
vector = ti.types.vector(16, real)
COUNT = 3


def doubled_neighbours(**options: Any) -> Any:
    """Make a kernel that stores twice the sum of a number and the next one, in vectors."""

    @no_type_check
    @kernel(**options)
    def double(x: ti.types.ndarray(dtype=real, ndim=1), y: ti.types.ndarray(dtype=vector, ndim=1), count: ti.i32):
        for block in range(count):
            both = y[block]
            for n in range(16):
                both[n] = x[16 * block + n] + x[16 * block + n + 1]
            y[block] = 2 * both

    return double


wide = doubled_neighbours(wide=True)


def misaligned() -> np.ndarray:
    """Allocate vectors that begin one number behind an aligned address."""
    return aligned_zeros((16 * COUNT + 1,), dtype)[1:].reshape(COUNT, 16)


@pytest.mark.gpu
def test_a_wide_kernel_computes_what_a_plain_one_does() -> None:
    x = np.random.default_rng(0).normal(size=16 * COUNT + 1).astype(dtype)
    found, expected = (aligned_zeros((COUNT, 16), dtype) for _ in range(2))
    wide(x, found, COUNT)
    doubled_neighbours()(x, expected, COUNT)
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(found.reshape(-1), 2 * (x[:-1] + x[1:]), rtol=4 * np.finfo(dtype).eps)


def test_the_options_of_the_compiler_are_the_same_afterwards() -> None:
    runtime.session()
    config = ti.lang.impl.current_cfg()
    before = config.real_matrix_scalarize
    doubled_neighbours(wide=True)(np.zeros(17, dtype), aligned_zeros((1, 16), dtype), 1)
    assert before and config.real_matrix_scalarize


@pytest.mark.parametrize("bound", [False, True], ids=["called", "bound"])
def test_an_array_that_is_not_aligned_is_refused_and_a_plain_kernel_takes_it(bound: bool) -> None:
    x, y = np.ones(16 * COUNT + 1, dtype), misaligned()
    size = dtype.itemsize
    wide(x, aligned_zeros((COUNT, 16), dtype), COUNT)  # compiled before
    with pytest.raises(InputError, match=rf"argument y: its address is a multiple of {16 * size} .* {size} bytes bey"):
        wide.bind(x, y) if bound else wide(x, y, COUNT)
    assert not y.any()
    doubled_neighbours()(x, y, COUNT)
    assert (y == 4).all()


def test_memory_of_the_compiler_is_refused() -> None:
    y = ti.Vector.ndarray(16, real, COUNT)
    with pytest.raises(InputError, match="argument y: a wide kernel takes NumPy arrays"):
        wide(np.ones(16 * COUNT + 1, dtype), y, COUNT)


def test_vectors_of_another_length_than_a_power_of_two_are_refused() -> None:
    three = ti.types.vector(3, real)
    with pytest.raises(InputError, match=r"a wide kernel has vectors of 2, 4, 8, .* found elements of shape \(3,\)"):

        @no_type_check
        @kernel(wide=True)
        def copy(x: ti.types.ndarray(dtype=three, ndim=1)):
            x[0] = x[1]


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5)], ids=str)
@pytest.mark.parametrize("make", [aligned_empty, aligned_zeros])
def test_aligned_arrays_begin_at_a_multiple_of_the_largest_vector(make: Any, shape: tuple[int, ...]) -> None:
    for kind in (np.float32, np.float64, np.uint8):
        made = [make(shape, kind) for _ in range(5)]
        assert all(
            (x.ctypes.data % ALIGNMENT == 0 or not x.size) and x.shape == shape and x.dtype == kind for x in made
        )
        assert all(x.flags.c_contiguous and x.flags.writeable for x in made)
        assert make is aligned_empty or not any([x.any() for x in made])
