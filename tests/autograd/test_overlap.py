"""Arguments of one launch that share memory: on every device the kernel sees one memory, or the launch is refused."""

from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import InputError, kernel, runtime, tensor
from simphys.autograd.kernels import staging
from simphys.autograd.kernels.records import record

from ..helpers.staged import launch_staged

ti = runtime.ti
real = runtime.real()
dtype = runtime.real_dtype()
reals, tables = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=real, ndim=2)
pairs = ti.types.ndarray(dtype=ti.types.vector(2, real), ndim=1)
ints = ti.types.ndarray(dtype=ti.i32, ndim=1)
MANY = 32
Many = record("Many", **dict.fromkeys([f"a{k}" for k in range(MANY)], reals))

pytestmark = pytest.mark.gpu


@no_type_check
@kernel
def raise_both(a: reals, b: reals):
    for i in range(3):
        a[i] = a[i] + 1.0
    for i in range(6):
        b[i] = b[i] + 10.0


@no_type_check
@kernel
def carry(a: reals, b: reals):
    for i in range(3):
        b[i] = a[i] + 1.0
    for i in range(3):
        b[i] = b[i] + 10.0 * a[i]


@no_type_check
@kernel
def chain(a: reals, b: reals, c: reals):
    for i in range(4):
        a[i] += 1.0
    for i in range(4):
        b[i] = 2.0 * b[i]
    for i in range(4):
        c[i] = c[i] + a[i]


@no_type_check
@kernel
def carry_table(a: tables, b: tables):
    for i, j in ti.ndrange(2, 2):
        b[i, j] = a[i, j] + 1.0
    for i, j in ti.ndrange(2, 2):
        b[i, j] = b[i, j] + 10.0 * a[i, j]


@no_type_check
@kernel
def write_pairs(a: pairs, b: tables):
    for i in range(2):
        a[i][0] = b[i, 1]


@no_type_check
@kernel
def write_by_shape(a: reals, b: reals):
    for i in range(a.shape[0]):
        a[i] = b[i] + 1.0


@no_type_check
@kernel
def write_integers(a: ints, b: reals):
    for i in range(2):
        a[i] = ti.cast(b[i], ti.i32)


@no_type_check
@kernel
def raise_many(many: Many, x: reals):
    for i in range(6):
        x[i] += 1.0
    for i in range(3):
        for k in ti.static(range(MANY)):
            many[k][i] += 10.0


def ways(of: Any) -> list[Any]:
    """The public call, a bound launch, and a launch with copies, as on a GPU."""
    return [of, lambda *given: of.bind(*given)(), lambda *given: launch_staged(of, *given)]


@pytest.mark.parametrize("way", range(3), ids=["call", "bound", "staged"])
class TestOneMemory:
    def test_two_written_arguments_that_overlap(self, way: int) -> None:
        x = np.zeros(6, dtype)
        ways(raise_both)[way](x[:3], x)
        np.testing.assert_array_equal(x, [11, 11, 11, 10, 10, 10])
        ways(raise_both)[way](x[3:], x)
        np.testing.assert_array_equal(x, [21, 21, 21, 21, 21, 21])

    def test_one_array_that_is_read_and_written(self, way: int) -> None:
        x = np.ones(3, dtype)
        ways(carry)[way](x, x)
        np.testing.assert_array_equal(x, 22)
        y = tensor(np.ones(3, dtype))
        ways(carry)[way](y, y)
        np.testing.assert_array_equal(y.data, 22)
        assert y.version == (way < 2)  # a launch counts the write, its staging does not

    def test_a_chain_of_overlaps(self, way: int) -> None:
        x = np.arange(8, dtype=dtype)
        ways(chain)[way](x[:4], x[2:6], x[4:])
        expected = np.arange(8, dtype=dtype)
        expected[:4] += 1
        expected[2:6] *= 2
        expected[4:] += expected[:4]
        np.testing.assert_array_equal(x, expected)

    def test_one_table_given_twice(self, way: int) -> None:
        x = np.ones((2, 2), dtype)
        ways(carry_table)[way](x, x)
        np.testing.assert_array_equal(x, 22)

    def test_neighbours_and_empty_arrays_share_nothing(self, way: int) -> None:
        x = np.ones(9, dtype)
        ways(carry)[way](x[:3], x[3:])
        np.testing.assert_array_equal(x, [1, 1, 1, 12, 12, 12, 1, 1, 1])
        ways(chain)[way](x[:4], x[4:8], np.ones(4, dtype))
        np.testing.assert_array_equal(x, [2, 2, 2, 13, 24, 24, 2, 2, 1])

    def test_more_arrays_than_drivers_bind(self, way: int) -> None:
        x = np.zeros(6, dtype)
        others = [np.zeros(3, dtype) for _ in range(MANY - 2)]
        ways(raise_many)[way](Many(x[:3], x[2:5], *others), x)
        np.testing.assert_array_equal(x, [11, 11, 21, 11, 11, 1])
        for other in others:
            np.testing.assert_array_equal(other, 10)


@pytest.mark.parametrize(
    ("of", "arguments", "message"),
    [
        (carry_table, lambda x: (x[:4].reshape(2, 2), x[2:].reshape(2, 2)), "carry_table, arguments a and b: on a GPU"),
        (write_pairs, lambda x: (x[:4].reshape(2, 2), x[:4].reshape(2, 2)), "the kernel writes a"),
        (write_by_shape, lambda x: (x[:3], x[1:4]), "with this the kernel does not compile"),
        (write_integers, lambda x: (x[:2].view(np.int32)[:2], x), "int32 of shape \\(2,\\) and float.. of shape"),
    ],
)
def test_what_cannot_be_one_memory_on_the_device_is_refused(of: Any, arguments: Any, message: str) -> None:
    x = np.arange(6, dtype=dtype)
    with pytest.raises(InputError, match=message):
        launch_staged(of, *arguments(x))
    np.testing.assert_array_equal(x, np.arange(6))


def test_copies_of_their_own_would_lose_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof that the tests above see the fault: with one copy an argument, contributions are lost."""
    monkeypatch.setattr(staging, "overlapping", lambda *_: [])
    x = np.zeros(6, dtype)
    launch_staged(raise_both, x[:3], x)
    np.testing.assert_array_equal(x, 10)
