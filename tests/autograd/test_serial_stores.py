"""Stores of a kernel in serial loops come in order: an optimization of Taichi 1.7.4 loses some, and is off."""

from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti


@no_type_check
def clear_after_a_count(real: Any) -> Any:
    @kernel
    def count_and_clear(x: ti.types.ndarray(dtype=real, ndim=1), steps: ti.i32, n: ti.i32):
        ti.loop_config(serialize=True)
        for _ in range(1):
            for _step in range(steps):
                x[0] += 1.0
                for i in range(n):
                    x[i] = 0.0

    return count_and_clear


@pytest.mark.gpu
def test_a_store_behind_one_that_is_hoisted_is_not_lost() -> None:
    x = np.full(2, 5.0, runtime.real_dtype())
    clear_after_a_count(runtime.real())(x, 1, 2)
    assert x.tolist() == [0.0, 0.0]
