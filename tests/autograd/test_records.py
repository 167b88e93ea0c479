"""Records and views: fields by name in kernels, checks of what is passed, and the text that the compiler gets."""

import inspect
from typing import Any, NamedTuple, no_type_check

import numpy as np
import pytest

from simphys.autograd import InputError, kernel, runtime, tensor
from simphys.autograd.kernels import staging
from simphys.autograd.kernels.flattened import identifiers
from simphys.autograd.kernels.records import View, record

from ..helpers.staged import launch_staged

ti = runtime.ti
real = runtime.real()
dtype = runtime.real_dtype()
reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
Springs = record("Springs", k=reals, L=reals, n=ti.i32)


class Ends(NamedTuple):
    a: Any
    b: Any


Net = record("Net", springs=Springs, ends=record(Ends, ints), h=real)


def springs(n: int = 3) -> Any:
    return Springs(k=np.arange(1.0, n + 1).astype(dtype), L=np.full(n, 2.0, dtype), n=n)


@ti.func
def stretch(s: ti.template(), i, by: real):
    s.L[i] += by * s.k[i]


@no_type_check
@kernel
def relax(s: Springs, x: reals, h: real):
    """Read and write fields."""

    # a comment before the loop
    for i in range(s.n):
        stretch(s, i, h)
        x[i] = s.L[i] + s.k[i]


@pytest.mark.gpu
def test_fields_are_read_and_written_and_only_these_are_marked() -> None:
    k, L, x = tensor(springs().k), tensor(springs().L), tensor(np.zeros(3, dtype))
    relax(Springs(k, L, 3), x, 0.5)
    np.testing.assert_allclose(L.data, [2.5, 3.0, 3.5])
    np.testing.assert_allclose(x.data, [3.5, 5.0, 6.5])
    assert relax.written == {"s.L", "x"} and (k.version, L.version, x.version) == (0, 1, 1)


@pytest.mark.gpu
def test_bound_launches_take_records_and_open_scalars() -> None:
    s, x = springs(), np.zeros(3, dtype)
    bound = relax.bind(s, x)
    bound(1.0)
    bound(1.0)
    np.testing.assert_allclose(s.L, [4.0, 6.0, 8.0])


def test_a_bound_launch_takes_the_scalars_that_are_open() -> None:
    bound = relax.bind(springs(), np.zeros(3, dtype))
    with pytest.raises(InputError, match=r"it takes 1 arguments; found 2. Pass h"):
        bound(1.0, 2.0)
    with pytest.raises(InputError, match="it takes 3 arguments; found 0"):
        relax.bind()


@no_type_check
@kernel
def gather(net: Net, x: reals, out: reals):
    for i in range(net.springs.n):
        a, b = net.ends.a[i], net.ends.b[i]
        out[i] = net.h * net.springs.k[i] * (x[b] - x[a])


@pytest.mark.gpu
def test_records_nest() -> None:
    ends = Ends(a=np.array([0, 1], np.int32), b=np.array([1, 2], np.int32))
    x, out = np.array([0.0, 1.0, 4.0], dtype), np.zeros(2, dtype)
    gather(Net(springs(2), ends, 0.5), x, out)
    np.testing.assert_allclose(out, [0.5, 3.0])
    with pytest.raises(InputError, match=r"net.ends: record Ends has the fields a, b; found k, L, n.*: add a, b, rem"):
        gather(Net(springs(2), springs(2), 0.5), x, out)


class Stiff(NamedTuple):
    k: Any
    n: int


class Damped(NamedTuple):
    k: Any
    L: Any
    n: int
    c: Any


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            Stiff(np.ones(3), 3),
            "kernel relax, argument s: record Springs has the fields k, L, n; found k, n.*: add L.",
        ),
        (Damped(np.ones(3), np.ones(3), 3, 1.0), "kernel relax, argument s: .* found k, L, n, c. .* remove c."),
        (np.ones(3), "kernel relax, argument s: it is a record with the fields k, L, n; found array"),
        (springs()._replace(L=np.ones(3, np.int32)), "kernel relax, argument s.L of record Springs: it is a 1-d array"),
        (springs()._replace(n=2.5), "kernel relax, argument s.n of record Springs: it is an integer"),
    ],
)
def test_other_fields_and_types_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        relax(given, np.zeros(3, dtype), 0.5)


def test_a_read_only_array_in_a_written_field_is_refused() -> None:
    s = springs()
    for name in ("k", "L"):
        getattr(s, name).flags.writeable = False
    with pytest.raises(InputError, match=r"argument s.L of record Springs: it writes to this argument; found a re"):
        relax(s, np.zeros(3, dtype), 0.5)


def test_the_order_of_fields_at_a_launch_does_not_matter() -> None:
    class Other(NamedTuple):
        n: int
        L: Any
        k: Any

    s, x = springs(), np.zeros(3, dtype)
    relax(Other(s.n, s.L, s.k), x, 1.0)
    np.testing.assert_allclose(s.L, [3.0, 4.0, 5.0])


def test_the_text_is_found_at_the_lines_of_the_original() -> None:
    flat = relax._kernel_of(runtime.session())._primal.func
    assert inspect.getsource(flat).startswith("def relax(s_k, s_L, s_n, x, h):\n    s = _static(")
    assert str(inspect.getsourcefile(flat)).endswith("/./test_records.py")
    line = next(i for i, text in enumerate(inspect.getsource(flat).splitlines()) if "range" in text)
    with open(__file__) as own:
        number = next(i for i, text in enumerate(own) if text.strip() == "for i in range(s.n):")
    assert flat.__code__.co_firstlineno + line == number + 1


def test_a_message_of_the_compiler_names_file_and_line() -> None:
    @no_type_check
    @kernel
    def wrong(s: Springs):
        for i in range(s.n):
            s.k[i] = s.nothing[i]  # here

    with open(__file__) as own:
        number = next(i for i, text in enumerate(own, 1) if text.endswith("# here\n"))
    with pytest.raises(Exception, match=f'test_records.py", line {number}'):
        wrong(springs())


def test_two_kernels_of_one_place_keep_their_own_texts() -> None:
    @no_type_check
    def make(kind: Any) -> Any:
        @kernel
        def fill(s: kind, x: reals):
            for i in range(3):
                x[i] = s.a[i]

        return fill

    a, x = np.arange(3).astype(dtype), np.zeros(3, dtype)
    one, two = record("One", a=reals), record("Two", b=reals, a=reals)
    make(one)(one(a), x)
    make(two)(two(np.zeros(1, dtype), 2 * a), x)
    np.testing.assert_allclose(x, 2 * a)


def test_names_of_fields_do_not_meet_those_of_parameters() -> None:
    assert identifiers({"s": Springs, "s_k": reals}) == {"s.k": "s_k_", "s.L": "s_L", "s.n": "s_n", "s_k": "s_k"}


def test_a_record_needs_a_type_for_each_field_and_for_no_other() -> None:
    for types in ({"a": ints}, {"a": ints, "b": ints, "c": ints}):
        with pytest.raises(InputError, match="record Ends: its fields are a, b; found types for a"):
            record(Ends, **types)
    assert list(record(Ends, ints, b=reals).fields.values()) == [ints, reals]


class Motion(NamedTuple):
    x: Any
    v: Any = None


def test_a_field_without_a_type_stays_empty() -> None:
    position = record(Motion, reals, v=None)

    @no_type_check
    @kernel
    def shift(old: position, new: record(Motion, x=reals)):
        for i in range(2):
            new.x[i] = old.x[i] + 1.0

    x, new = np.zeros(2, dtype), np.zeros(2, dtype)
    shift(Motion(x), position(new))
    np.testing.assert_allclose(new, [1.0, 1.0])
    assert shift.written == {"new.x"}
    with pytest.raises(InputError, match=r"argument old: record Motion has the fields x; found x, v.*: remove v"):
        shift(Motion(x, x), Motion(new))


# --- more arrays than drivers bind

MANY = 40
Many = record("Many", **{f"a{k}": reals for k in range(MANY)}, n=ti.i32)


@no_type_check
@kernel
def sum_of_many(given: Many, places: ints, out: reals, extra: reals):
    for i in range(given.n):
        total = extra[i]
        for k in ti.static(range(0, MANY, 2)):
            total += given[k][places[i]] + given[k + 1][places[i]]
        out[i] = total
        given.a0[i] = -1.0


def many() -> tuple[Any, ...]:
    arrays = [np.full(3, k + 1.0, dtype) for k in range(MANY)]
    return Many(*arrays, n=3), np.arange(3, dtype=np.int32), np.zeros(3, dtype), arrays[1]


@pytest.mark.gpu
def test_a_kernel_may_have_more_arrays_than_drivers_bind() -> None:
    arguments = many()
    sum_of_many(*arguments)
    np.testing.assert_allclose(arguments[2], MANY * (MANY + 1) / 2 + 2)
    np.testing.assert_allclose(arguments[0].a0, -1.0)


def test_arrays_are_packed_where_drivers_bind_few(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum_of_many.written >= {"given.a0", "out"}
    monkeypatch.setattr(staging, "ARCHS", ("cpu", "vulkan", "metal"))
    given, *others = many()
    launch_staged(sum_of_many, given, *others)
    np.testing.assert_allclose(others[1], MANY * (MANY + 1) / 2 + 2)
    np.testing.assert_allclose(given.a0, -1.0)
    np.testing.assert_allclose(given.a1, 2.0)
    on_device = [ti.ndarray(real, 3) for _ in range(MANY)]
    with pytest.raises(InputError, match="kernel sum_of_many: a device binds 30 arrays; found 42"):
        launch_staged(sum_of_many, Many(*on_device, n=3), *others)


# --- views


@ti.func
def double(x: ti.template(), n):
    for i in range(n):
        x[i] = 2 * x[i]


@no_type_check
@kernel
def double_rows(x: reals, layout: ints, n: ti.i32):
    for b in range(2):
        row = ti.static(View(x, b * n + layout[0]))
        double(row, n)
        inner = ti.static(View(row, 1))
        inner[0] += 100.0


@pytest.mark.gpu
def test_a_view_reads_and_writes_from_its_offset_on() -> None:
    x = tensor(np.arange(5).astype(dtype))
    double_rows(x, np.array([1], np.int32), 2)
    np.testing.assert_allclose(x.data, [0, 2, 104, 6, 108])
    assert double_rows.written == {"x"} and x.version == 1


@no_type_check
@kernel
def stretch_part(k: reals, work: reals, at: ti.i32):
    for _ in range(1):
        s = ti.static(Springs(k=k, L=View(work, at), n=2))
        for i in range(s.n):
            stretch(s, i, 1.0)


@pytest.mark.gpu
def test_a_record_of_views_is_made_in_a_kernel() -> None:
    work = np.zeros(4, dtype)
    stretch_part(np.array([1.0, 2.0], dtype), work, 1)
    np.testing.assert_allclose(work, [0, 1, 2, 0])
    assert stretch_part.written == {"work"}
