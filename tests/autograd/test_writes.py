"""Writes of kernels are found in their source: no write to an argument or a captured field is missed."""

from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

import numpy as np
import pytest

from simphys.autograd import InputError, kernel, runtime, tensor
from simphys.autograd.kernels.records import View, record, stands_for
from simphys.autograd.kernels.writes import Writes, writes_of

ti = runtime.ti
real = runtime.real()
dtype = runtime.real_dtype()
Reals = ti.types.ndarray(dtype=real, ndim=1)
Vectors = ti.types.ndarray(dtype=ti.math.vec2, ndim=1)


@ti.func
def shift(a: ti.template(), by: real):
    a += by


@ti.func
def look(a: ti.template()) -> real:
    return a[0]


@no_type_check
@kernel
def through_functions(
    read: ti.types.ndarray(dtype=real, ndim=1),
    shifted: ti.types.ndarray(dtype=real, ndim=1),
    added: ti.types.ndarray(dtype=real, ndim=1),
    swapped: ti.types.ndarray(dtype=real, ndim=1),
):
    for i in range(1):
        shift(shifted[i], by=read[i] + look(read))
        ti.atomic_add(added[i], read[i])
        _local = 0.0
        _local, swapped[i] = swapped[i], read[i]


def ones(count: int) -> np.ndarray:
    return np.ones(count, dtype)


@pytest.mark.gpu
def test_writes_through_functions_atomics_and_swaps_are_noticed() -> None:
    assert through_functions.written == {"shifted", "added", "swapped"}
    arrays = [tensor(ones(1)) for _ in range(4)]
    through_functions(*arrays)
    assert [x.version for x in arrays] == [0, 1, 1, 1]
    assert [x.item() for x in arrays] == [1.0, 3.0, 2.0, 1.0]


def test_an_array_handed_to_something_unknown_counts_as_written() -> None:
    def body(a: Any, b: Any) -> None:
        unknown(a)  # type: ignore[name-defined]  # noqa: F821
        print(b[0])

    assert writes_of(body).parameters == {"a"}


@no_type_check
def writers() -> dict[str, Any]:
    """Kernels that write x and read y, in different ways."""

    def augmented(x: Reals, y: Reals):
        x[0] += y[0]

    def component(x: Vectors, y: Reals):
        x[0].y = y[0]

    def component_by_number(x: Vectors, y: Reals):
        x[0][1] = y[0]

    def filled(x: Vectors, y: Reals):
        x[0].fill(y[0])

    def alias(x: Reals, y: Reals):
        for _ in range(1):
            z = ti.static(x)
            z[0] = y[0]

    def two_aliases(x: Reals, y: Reals):
        for _ in range(1):
            u, v = ti.static(y, x)
            v[0] = u[0]

    def alias_of_a_loop(x: Reals, y: Reals):
        for _ in range(1):
            for z in ti.static([x]):
                z[0] = y[0]

    def imported_atomic(x: Reals, y: Reals):
        atomic_add(x[0], y[0])

    def recursive(x: Reals, y: Reals):
        descend(x, 2)

    return {name: function for name, function in locals().items() if callable(function)}


atomic_add = ti.atomic_add


@ti.func
def descend(a: ti.template(), levels: ti.template()):
    a[levels] = 1.0
    if ti.static(levels > 0):
        descend(a, levels - 1)


WRITERS = writers()


@pytest.mark.gpu
@pytest.mark.parametrize("name", WRITERS)
def test_each_way_of_writing_is_found_and_does_write(name: str) -> None:
    write = kernel(WRITERS[name])
    assert write.written - {"y"} == {"x"} and ("y" not in write.written or name == "recursive")
    before = 7 * np.ones((3, 2) if "component" in name or name == "filled" else 3, dtype)
    x, y = tensor(before), tensor(ones(3))
    write(x, y)
    assert x.version == 1 and x.data[0].sum() != before[0].sum()
    np.testing.assert_array_equal(y.data, ones(3))


def test_a_copy_of_an_element_is_not_the_array() -> None:
    @no_type_check
    @kernel
    def look_at(v: Vectors, y: Reals):
        for i in range(1):
            u = v[i]
            u[0] = 5.0
            y[i] = u[0] + u.norm() + ti.max(u[0], u[1])

    v, y = tensor(np.ones((1, 2), dtype)), tensor(ones(1))
    look_at(v, y)
    assert look_at.written == {"y"} and v.data.tolist() == [[1.0, 1.0]]


# --- records and views

Springs = record("Springs", k=Reals, L=Reals, c=Reals)


class Pair(NamedTuple):
    a: Any
    b: Any


Both = record(Pair, Springs)


@ti.func
def write_length(s: ti.template(), i):
    s.L[i] = s.k[i]


@ti.func
def write_length_below(springs: ti.template(), i):
    write_length(springs, i)


@ti.func
def write_first(a: ti.template(), b: ti.template(), c: ti.template()):
    a[0] = b[0] + c[0]


@ti.func
def write_of_pair(pair: ti.template()):
    write_length(pair.b, 0)


@ti.func
def write_unpacked(s: ti.template()):
    k, L, c = ti.static(s)
    L[0] = k[0] + c[0]


def part(springs: Any, reads: Any) -> Any:
    """A record that is made while the kernel compiles."""
    return Pair(springs.L, reads)


@stands_for("springs")
def marked_part(springs: Any, reads: Any) -> Any:
    """The same, with elements of `springs` alone written."""
    return Pair(springs.L, reads)


@no_type_check
def writers_of_records() -> dict[str, Any]:
    """Kernels that write s.L, and read all other fields."""

    def direct(s: Springs, y: Reals):
        s.L[0] = s.k[0] + y[0]

    def augmented(s: Springs, y: Reals):
        s.L[0] += s.k[0] * y[0]

    def atomic(s: Springs, y: Reals):
        ti.atomic_add(s.L[0], s.c[0])

    def through_a_function(s: Springs, y: Reals):
        for _ in range(1):
            write_length(s, 0)

    def through_two_functions(s: Springs, y: Reals):
        for _ in range(1):
            write_length_below(s, 0)

    def alias_of_a_field(s: Springs, y: Reals):
        for _ in range(1):
            z = ti.static(s.L)
            z[0] = s.k[0]

    def alias_of_the_record(s: Springs, y: Reals):
        for _ in range(1):
            z = ti.static(s)
            z.L[0] = s.k[0]

    def fields_passed(s: Springs, y: Reals):
        for _ in range(1):
            write_first(s.L, s.k, c=s.c)

    def unpacked(s: Springs, y: Reals):
        for _ in range(1):
            k, L, _c = ti.static(s)
            L[0] = k[0]

    def unpacked_in_a_function(s: Springs, y: Reals):
        for _ in range(1):
            write_unpacked(s)

    def star(s: Springs, y: Reals):
        for _ in range(1):
            write_first(*ti.static((s.L, s.k, s.c)))

    def made_here(s: Springs, y: Reals):
        for _ in range(1):
            other = ti.static(Springs(k=s.c, L=s.L, c=y))
            write_length(other, 0)

    def made_of_fields(s: Springs, y: Reals):
        for _ in range(1):
            pair = ti.static(Pair(s.k, s.L))
            pair.b[0] = pair.a[0]

    def made_in_the_call(s: Springs, y: Reals):
        for _ in range(1):
            write_first(ti.static(View(s.L, 1)), s.k, y)

    def replaced(s: Springs, y: Reals):
        for _ in range(1):
            other = ti.static(s._replace(L=y, k=s.L))
            other.k[0] = other.L[0] + other.c[0]

    def view(s: Springs, y: Reals):
        for _ in range(1):
            z = ti.static(View(s.L, 0))
            z[0] = s.k[0]

    def record_of_views(s: Springs, y: Reals):
        for _ in range(1):
            other = ti.static(Springs(k=View(s.k, 0), L=View(s.L, 0), c=y))
            write_length_below(other, 0)

    return {name: function for name, function in locals().items() if callable(function)}


@no_type_check
def wider_writers() -> dict[str, tuple[Any, set[str]]]:
    """Kernels that write s.L, and other fields that count as written with it."""

    def loop(s: Springs, y: Reals):
        for _ in range(1):
            for z in ti.static((s.k, s.L)):
                z[0] = y[0]

    def loop_of_pairs(s: Springs, y: Reals):
        for _ in range(1):
            for z, _reads in ti.static(((s.k, y), (s.L, y))):
                z[0] = 2.0

    def loop_of_zip(s: Springs, y: Reals):
        for _ in range(1):
            for z, _also in ti.static(zip((s.k, s.L), (s.L, s.k), strict=True)):
                z[0] = y[0]

    def loop_of_the_record(s: Springs, y: Reals):
        for _ in range(1):
            for z in ti.static(s):
                z[0] = y[0]

    def replaced(s: Springs, y: Reals):
        for _ in range(1):
            k, L, _c = ti.static(s._replace(k=s.L))
            k[0] = L[0] + 1.0

    def unknown_part(s: Springs, y: Reals):
        for _ in range(1):
            pair = ti.static(part(s, y))
            pair.a[0] = pair.b[0]

    def known_part(s: Springs, y: Reals):
        for _ in range(1):
            pair = ti.static(marked_part(s, y))
            pair.a[0] = pair.b[0]

    whole = {"s.k", "s.L", "s.c"}
    return {
        "loop": (loop, {"s.k", "s.L"}),
        "loop_of_pairs": (loop_of_pairs, {"s.k", "s.L"}),
        "loop_of_zip": (loop_of_zip, {"s.k", "s.L"}),
        "loop_of_the_record": (loop_of_the_record, whole),
        "replaced_and_unpacked": (replaced, {"s.k", "s.L"}),
        "unknown_part": (unknown_part, whole | {"y"}),
        "known_part": (known_part, whole),
    }


RECORD_WRITERS = {name: (function, {"s.L"}) for name, function in writers_of_records().items()} | wider_writers()


@pytest.mark.gpu
@pytest.mark.parametrize("name", RECORD_WRITERS)
def test_each_way_of_writing_a_field_is_found_and_does_write(name: str) -> None:
    function, expected = RECORD_WRITERS[name]
    write = kernel(function)
    assert write.written == expected
    s, y = Springs(*[tensor(value * ones(3)) for value in (7.0, 5.0, 3.0)]), tensor(11 * ones(3))
    write(s, y)
    assert [x.version for x in s] == [int(f"s.{field}" in expected) for field in s._fields]
    assert (s.L.data != 5).any() and (s.c.data == 3).all() == (name != "loop_of_the_record")


def test_a_field_of_a_record_in_a_record_is_found_through_functions() -> None:
    @no_type_check
    @kernel
    def write(both: Both):
        for _ in range(1):
            write_of_pair(both)

    assert write.written == {"both.b.L"}
    both = Pair(*[Springs(*[tensor(ones(1)) for _ in range(3)]) for _ in range(2)])
    write(both)
    assert [x.version for s in both for x in s] == [0, 0, 0, 0, 1, 0]


def test_a_record_handed_to_something_unknown_counts_as_written() -> None:
    @no_type_check
    def body(s: Springs, other: Springs, y: Reals):
        unknown(s, other.k, (y,))  # noqa: F821

    found = writes_of(body, {"s": Springs, "other": Springs})
    assert found.parameters == {"s.k", "s.L", "s.c", "other.k", "y"}


# --- captured names

held = SimpleNamespace(field=None)
step = 3


@no_type_check
def capturing() -> dict[str, Any]:
    field = other = held

    def assigned(x: Reals):
        field[0] = x[0]

    def attribute(x: Reals):
        field.inner[0] += x[0]

    def atomic(x: Reals):
        ti.atomic_add(field[0], x[0])

    def through_an_alias(x: Reals):
        z = ti.static(field)
        z[0] = x[0]

    def through_a_function(x: Reals):
        shift(field[0], x[0])

    def inside_a_function(x: Reals):
        write_held(x[0])

    def read(x: Reals):
        x[0] = field[0] + other.inner[step]

    return {name: function for name, function in locals().items() if callable(function)}


@ti.func
def write_held(value: real):
    held[0] = value


@pytest.mark.parametrize("name", sorted(set(capturing()) - {"read"}))
def test_a_kernel_that_writes_to_a_captured_field_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"kernel {name}: it writes to its arguments only; found (field|held)"):
        kernel(capturing()[name])


def test_captured_values_may_be_read() -> None:
    assert writes_of(capturing()["read"]) == Writes(frozenset({"x"}), frozenset())


def test_local_names_are_not_captured_ones() -> None:
    def body(x: Any) -> None:
        step = 1  # as a global is called
        for held in range(3):
            step += held
        x.held[0] = step

    assert writes_of(body) == Writes(frozenset({"x"}), frozenset())


def test_a_kernel_without_source_is_refused() -> None:
    with pytest.raises(InputError, match=r"its source is in a file; found none"):
        kernel(eval("lambda x: x"))
