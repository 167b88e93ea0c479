"""Continuation of fields beyond the sides of their grid."""

from typing import Any

import numpy as np
import pytest

from simphys.numerics.boundary import fold

COUNT, BEYOND = 5, 4


def continue_field(
    low: str, high: str, field: np.ndarray[Any, Any], indices: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    index, sign = fold(indices, COUNT, low, high)
    found: np.ndarray[Any, Any] = sign * field[index]
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
