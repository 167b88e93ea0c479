"""Continuation of fields beyond the sides of their grid."""

from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import boundary

COUNT, BEYOND = 5, 4


@no_type_check
def continue_field(
    low: str, high: str, field: np.ndarray[Any, Any], indices: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    real = runtime.real()
    fold = boundary.functions(real, COUNT, low, high).fold
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def read(field: reals, indices: integers, found: reals):
        for k in range(indices.shape[0]):
            index, sign = fold(indices[k])
            found[k] = sign * field[index]

    found = np.empty(len(indices))
    read(field, indices.astype(np.int32), found)
    return found


@pytest.mark.parametrize(
    "low, high, padded",
    [
        ("zero", "zero", lambda u: np.pad(np.pad(u, 1), BEYOND - 1, mode="reflect", reflect_type="odd")),
        ("free", "free", lambda u: np.pad(u, BEYOND, mode="symmetric")),
        ("periodic", "periodic", lambda u: np.pad(u, BEYOND, mode="wrap")),
        ("free", "absorbing", lambda u: np.concatenate([u[:BEYOND][::-1], u, np.zeros(BEYOND)])),
        ("absorbing", "zero", lambda u: np.concatenate([np.zeros(BEYOND), u, [0.0], -u[-BEYOND + 1 :][::-1]])),
    ],
)
def test_a_field_is_continued_as_its_sides_say(low: str, high: str, padded: Any) -> None:
    field = np.random.default_rng(0).normal(size=COUNT)
    found = continue_field(low, high, field, np.arange(-BEYOND, COUNT + BEYOND))
    np.testing.assert_array_equal(found, padded(field))


def test_indices_far_away_lead_to_no_memory_outside() -> None:
    field, far = np.ones(COUNT), np.array([-(2**31), -100, 100, 2**31 - 1])
    np.testing.assert_array_equal(continue_field("zero", "free", field, far), 0.0)
    np.testing.assert_array_equal(continue_field("periodic", "periodic", field, far), 1.0)
