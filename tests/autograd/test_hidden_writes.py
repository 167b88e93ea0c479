"""Writes behind names, choices and calls that the source alone does not resolve count as writes."""

from pathlib import Path
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import InputError, kernel, runtime, tensor
from simphys.autograd.kernels.writes import writes_of

ti = runtime.ti
real = runtime.real()
dtype = runtime.real_dtype()
Reals = ti.types.ndarray(dtype=real, ndim=1)
plus = ti.atomic_add
OPERATIONS = {"add": ti.atomic_add}


@ti.func
def set_first(a: ti.template(), i):
    a[i] = 0.0


def pick(x: Any, y: Any) -> Any:
    return x


def both(x: Any, y: Any) -> Any:
    return [x, y]


@no_type_check
def writers() -> dict[str, Any]:
    """Kernels that write x, by way of a choice or a name that is made while the kernel compiles."""

    def enumerated(x: Reals, y: Reals):
        for i in range(1):
            for _, z in ti.static(enumerate((x, y))):
                z[i] = 0.0

    def zipped(x: Reals, y: Reals):
        for i in range(1):
            for z, _ in ti.static(zip((x, y), (y, x), strict=True)):
                z[i] = 0.0

    def reversed_names(x: Reals, y: Reals):
        for i in range(1):
            for z in ti.static(list(reversed((x, y)))):
                z[i] = 0.0

    def static_in_place(x: Reals, y: Reals):
        for i in range(1):
            ti.static(x)[i] = 0.0

    def static_augmented(x: Reals, y: Reals):
        for i in range(1):
            ti.static(x)[i] -= 7.0

    def member_of_static(x: Reals, y: Reals):
        for i in range(1):
            for j in ti.static(range(2)):
                ti.static((x, y))[j][i] = 0.0

    def number_of_static(x: Reals, y: Reals):
        for i in range(1):
            ti.static((y, x))[1][i] = 0.0

    def chosen(x: Reals, y: Reals):
        for i in range(1):
            z = ti.static(x if choice else y)
            z[i] = 0.0

    def chosen_in_place(x: Reals, y: Reals):
        for i in range(1):
            (x if ti.static(choice) else y)[i] = 0.0

    def renamed_atomic(x: Reals, y: Reals):
        for i in range(1):
            plus(x[i], -7.0)

    def looked_up_atomic(x: Reals, y: Reals):
        for i in range(1):
            getattr(ti, "atomic_add")(x[i], -7.0)  # noqa: B009

    def atomic_of_a_table(x: Reals, y: Reals):
        for i in range(1):
            ti.static(OPERATIONS["add"])(x[i], -7.0)

    def renamed_here(x: Reals, y: Reals):
        for i in range(1):
            op = ti.static(ti.atomic_add)
            op(x[i], -7.0)

    def function_of_static(x: Reals, y: Reals):
        for i in range(1):
            set_first(ti.static(x), i)

    def function_of_star(x: Reals, y: Reals):
        for i in range(1):
            set_first(*(x, i))

    def function_of_choice(x: Reals, y: Reals):
        for i in range(1):
            set_first(ti.static(x if choice else y), i)

    def function_of_bare_choice(x: Reals, y: Reals):
        for i in range(1):
            set_first(x if ti.static(choice) else y, i)

    def function_of_member(x: Reals, y: Reals):
        for i in range(1):
            set_first(ti.static((x, y))[0], i)

    def function_of_call(x: Reals, y: Reals):
        for i in range(1):
            set_first(ti.static(pick(x, y)), i)

    def function_of_bare_call(x: Reals, y: Reals):
        for i in range(1):
            set_first(pick(x, y), i)

    def picked(x: Reals, y: Reals):
        for i in range(1):
            pick(x, y)[i] = 0.0

    def picked_of_several(x: Reals, y: Reals):
        for i in range(1):
            both(x, y)[0][i] = 0.0

    def picked_and_named(x: Reals, y: Reals):
        for i in range(1):
            z = ti.static(pick(x, y))
            z[i] = 0.0

    def comprehension(x: Reals, y: Reals):
        for i in range(1):
            for z in ti.static([a for a in (x, y)]):
                z[i] = 0.0

    def slice_of_static(x: Reals, y: Reals):
        for i in range(1):
            for z in ti.static((x, y)[:1]):
                z[i] = 0.0

    def sum_of_tuples(x: Reals, y: Reals):
        for i in range(1):
            for z in ti.static((x,) + (y,)):  # noqa: RUF005
                z[i] = 0.0

    return {name: function for name, function in locals().items() if callable(function)}


choice = True
WRITERS = writers()


@pytest.mark.filterwarnings("ignore:.*Calling non-")
@pytest.mark.parametrize("name", WRITERS)
def test_each_hidden_write_raises_the_version(name: str) -> None:
    write = kernel(WRITERS[name])
    x, y = tensor(7 * np.ones(1, dtype)), tensor(9 * np.ones(1, dtype))
    write(x, y)
    assert x.data.tolist() == [0.0] and x.version == 1
    assert y.version == int("y" in write.written) and (y.version or y.data.tolist() == [9.0])


@pytest.mark.filterwarnings("ignore:.*Calling non-")
@pytest.mark.parametrize("name", WRITERS)
def test_a_read_only_array_is_not_written_to(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", 7 * np.ones(1, dtype))
    with pytest.raises(InputError, match="argument x: it writes to this argument; found a read-only array"):
        kernel(WRITERS[name])(np.load(tmp_path / "x.npy", mmap_mode="r"), np.ones(1, dtype))


def test_a_call_by_a_name_that_is_made_here_counts_its_elements_as_written() -> None:
    @no_type_check
    def body(x: Any, y: Any, i: Any):
        operation = ti.static(ti.atomic_add if y else ti.atomic_sub)
        operation(x[i], 1.0)

    assert writes_of(body).parameters == {"x"}
