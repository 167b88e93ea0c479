"""Settings change within a process: kernels, launches, graphs, caches and device memory before and after a switch."""

import functools
import gc
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np
import pytest

from simphys.autograd import Context, Function, InputError, Tensor, checkpoint, hvp, kernel, linearize, runtime, tensor
from simphys.autograd.kernels import device, launch, variant
from simphys.autograd.kernels.runtime import Settings, ti

from ..helpers.compilers import OTHER, needs_other
from ..helpers.rounding import assert_equal_but_for_rounding

F32, F64 = Settings(precision="f32"), Settings(precision="f64")
BOTH = Settings(precision="f32", threads=2), Settings(precision="f64", threads=2)

OWN_PROCESS = "SIMPHYS_TEST_SETTINGS"
"""Variable that is set in the process in which the last test runs these."""
restarts = pytest.mark.skipif(OWN_PROCESS not in os.environ, reason="only in a process whose compiler serves no others")
"""Mark of a test that starts the compiler again, which ends the kernels of all tests."""


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """The product with c + 0.1, in which 0.1 is a literal of the precision that the kernel is compiled in."""

    @kernel
    def scale(x: ti.types.ndarray(dtype=real, ndim=1), c: real, y: ti.types.ndarray(dtype=real, ndim=1)):
        for i in range(x.shape[0]):
            y[i] = x[i] * (c + 0.1)

    return SimpleNamespace(scale=scale)


class Scale(Function):
    """x [n] times c + 0.1."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, c: float) -> np.ndarray:
        ctx.c = c
        return scaled(x, c)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[np.ndarray, None]:
        return scaled(adj, ctx.c), None

    @staticmethod
    def jvp(ctx: Context, tangent: Any, _: None) -> np.ndarray:
        return scaled(tangent, ctx.c)


def scaled(x: Any, c: float) -> np.ndarray:
    result = np.empty(x.shape, x.dtype)
    kernels(runtime.real()).scale(x, c, result)
    return result


def restart() -> None:
    """Let the compiler start again on the next switch, whatever the number of threads."""
    runtime._Program.threads = 0


@pytest.fixture(autouse=True)
def _cpu() -> Iterator[None]:
    with runtime.using(F64):
        yield


# --- the switch


def test_a_switch_changes_the_precision_of_reals_tensors_and_literals() -> None:
    for settings, exact in ((F64, 0.4), (F32, np.float32(0.4)), (F64, 0.4)):
        chosen = runtime.init(precision=settings.precision)
        assert chosen == runtime.settings() == settings
        assert tensor(1.5).dtype == runtime.real_dtype() == Scale.apply(tensor([1.0]), 0.3).dtype
        assert Scale.apply(tensor([1.0]), 0.3).item() == exact


@restarts
def test_coming_back_finds_what_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> list[np.ndarray]:
        found = []
        for settings in (*BOTH, F32, F64):  # two threads first: more than the pool has start the compiler again
            with runtime.using(settings):
                found.append(Scale.apply(tensor(np.linspace(0, 1, 2000)), 0.3).data)
        return found

    first, program = results(), runtime.session().program
    monkeypatch.setattr(launch, "Variant", None)  # nothing can be compiled
    for before, after in zip(first, results(), strict=True):
        np.testing.assert_array_equal(before, after)
    assert runtime.session().program == program


def test_settings_come_back_after_a_block_and_after_an_error() -> None:
    with pytest.raises(KeyError), runtime.using(F32):
        assert runtime.settings() == F32
        raise KeyError
    assert runtime.settings() == F64


@restarts
def test_threads_of_a_kernel_are_those_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    serial: list[bool] = []
    in_this_thread = variant._in_this_thread

    def seen() -> Any:
        serial.append(True)
        return in_this_thread()

    monkeypatch.setattr(variant, "_in_this_thread", seen)
    kernels.cache_clear()
    x = tensor(np.ones(3000))
    for threads, compiled in ((1, [True]), (2, [True]), (1, [True]), (3, [True])):
        with runtime.using(Settings(threads=threads)):
            np.testing.assert_array_equal(Scale.apply(x, 0.9).data, 1.0)
        assert serial == compiled
    kernels.cache_clear()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"precision": "f16"}, "precision is f32 or f64"),
        ({"arch": "tpu"}, "arch is one of"),
        ({"arch": "vulkan", "precision": "f64"}, "arch=vulkan computes in f32 only"),
        ({"threads": 0}, "threads is at least 1"),
    ],
)
def test_refused_settings_leave_those_before_in_force(wanted: dict[str, Any], message: str) -> None:
    session = runtime.session()
    with pytest.raises(InputError, match=re.escape(message)):
        runtime.init(**wanted)
    assert runtime.session() is session
    assert Scale.apply(tensor([1.0]), 0.3).item() == 0.4


@restarts
def test_a_start_that_fails_brings_the_settings_before_back(monkeypatch: pytest.MonkeyPatch) -> None:
    start, tried = runtime._start_program, []

    def failing(wanted: Settings) -> None:
        tried.append(wanted)
        if len(tried) == 1:
            raise InputError("runtime.init", "a device", "a broken one", "Use arch=cpu.")
        start(wanted)

    monkeypatch.setattr(runtime, "_start_program", failing)
    restart()
    with pytest.raises(InputError, match="a broken one"):
        runtime.init(precision="f32")
    assert tried == [F32, F64] and runtime.settings() == F64
    assert Scale.apply(tensor([1.0]), 0.3).item() == 0.4


# --- tensors and kernels of another precision


def test_old_tensors_stay_valid_and_arithmetic_keeps_their_precision() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    with runtime.using(F32):
        (x * x).sum().backward()
        assert x.dtype == np.float64 == (x * 2.0).dtype
        assert x.grad is not None and x.grad.data.tolist() == [2.0, 4.0]


def test_a_function_refuses_tensors_of_another_precision_and_says_how_to_go_on() -> None:
    x = tensor([1.0])
    with runtime.using(F32), pytest.raises(InputError, match=r"float32; found float64.*init\(precision='f64'\)"):
        Scale.apply(x, 0.3)
    with runtime.using(F32):
        y = tensor([1.0])
        with pytest.raises(InputError, match=r"it computes in float32, .*; found float64.*init\(precision='f64'\)"):
            runtime.require_precision("Scale", y, x)
    with pytest.raises(InputError, match=r"float64; found float32.*init\(precision='f32'\)"):
        Scale.apply(y, 0.3)


def test_a_kernel_refuses_a_precision_in_which_it_was_not_made() -> None:
    made, x, y = kernels(ti.f64).scale, np.ones(2), np.zeros(2)
    made(x, 0.3, y)
    for call in (made, made.bind):
        with runtime.using(F32), pytest.raises(InputError, match=r"made in precision f64.*precision='f32'.*in force"):
            call(x, 0.3, y)
    made(x, 0.3, y)
    assert y.tolist() == [0.4, 0.4]


def test_a_bound_launch_keeps_the_settings_in_which_it_was_bound() -> None:
    x, y = np.ones(2), np.zeros(2)
    bound = kernels(ti.f64).scale.bind(x, 0.3, y)
    with runtime.using(F32):
        bound()
        assert runtime.settings() == F32
    assert y.tolist() == [0.4, 0.4]


def test_a_kernel_that_is_made_before_the_start_runs_in_each_precision(tmp_path: Path) -> None:
    assert run(
        """
        @kernel
        def add(x: ti.types.ndarray(ndim=1)):
            x[0] += 0.1

        for precision in ("f32", "f64", "f32", "f64"):
            runtime.init(precision=precision)
            x = np.zeros(1)
            add(x)
            print(x[0])
        """,
        tmp_path,
    ) == ["0.10000000149011612", "0.1", "0.10000000149011612", "0.1"]


def run(program: str, folder: Path, **environment: str) -> list[str]:
    """Run a program in a new process, and return the lines that it prints."""
    script = folder / "program.py"
    imports = "import numpy as np\nfrom simphys.autograd import InputError, kernel, runtime\nti = runtime.ti\n"
    script.write_text(imports + textwrap.dedent(program))
    env = {**os.environ, **environment}
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("foreign", ["ti.init(arch=ti.cpu, log_level=ti.ERROR)", "ti.reset()"])
def test_a_switch_notices_a_start_of_the_compiler_elsewhere(foreign: str, tmp_path: Path) -> None:
    program = f"""
    runtime.init()
    {foreign}
    try:
        runtime.init(precision="f32")
    except InputError as error:
        print(error)
    """
    (message,) = [line for line in run(program, tmp_path) if line.startswith("runtime.init")]
    assert "the compiler is started here only" in message


# --- graphs


def test_a_graph_runs_backward_and_forward_in_the_settings_in_which_it_was_recorded() -> None:
    x = tensor(np.linspace(0, 1, 5), requires_grad=True)
    y = Scale.apply(Scale.apply(x, 0.3) * x, 0.2)
    push = linearize(y, x)
    expected = push(np.ones(5))[0]
    with runtime.using(F32):
        z = tensor(x.data, requires_grad=True)
        assert z.dtype == np.float32
        w = Scale.apply(z, 0.3)
        np.testing.assert_array_equal(push(np.ones(5))[0], expected)
        y.sum().backward()
        assert runtime.settings() == F32
    assert x.grad is not None and x.grad.dtype == np.float64
    assert_equal_but_for_rounding(x.grad.data, expected)
    w.sum().backward()  # of f32, in f64
    assert z.grad is not None and z.grad.dtype == np.float32
    np.testing.assert_array_equal(z.grad.data, np.full(5, 0.4, np.float32))


def test_a_replay_computes_in_the_settings_of_its_node() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    y = checkpoint(lambda x: Scale.apply(x * x, 0.3), x)
    with runtime.using(F32):
        y.sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.data, 2 * x.data * 0.4)


def test_second_derivatives_of_a_graph_of_other_settings() -> None:
    x = tensor([1.0, 2.0])
    with runtime.using(F32):
        found = hvp(lambda x: (x * x * x).sum(), x, np.ones(2))
    np.testing.assert_allclose(np.asarray(found[1] if isinstance(found, tuple) else found), 6 * x.data)


def test_backward_of_a_node_of_another_arch_names_both_settings() -> None:
    x = tensor([1.0], requires_grad=True)
    y = Scale.apply(x, 0.3)
    assert y.grad_fn is not None
    y.grad_fn._session = runtime.Session(Settings(arch="vulkan", precision="f32"), 1)
    with pytest.raises(InputError, match=r"ScaleBackward.*arch='vulkan'.*arch='cpu'.*Call runtime.init\(arch='vulkan'"):
        y.sum().backward()
    (x * x).sum().backward()  # what needs no kernel goes on


# --- another program of the compiler


@restarts
def test_launches_and_graphs_survive_another_start_of_the_compiler() -> None:
    x, out = tensor(np.linspace(0, 1, 5), requires_grad=True), np.zeros(5)
    y = Scale.apply(x, 0.3)
    bound = kernels(ti.f64).scale.bind(x.detach(), 0.3, out)
    before = runtime.session().program
    restart()
    with runtime.using(F32):
        assert runtime.session().program == before + 1
        bound()
        y.sum().backward()
        assert runtime.settings() == F32
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.data, np.full(5, 0.4))
    np.testing.assert_array_equal(out, y.data)
    bound()
    np.testing.assert_array_equal(Scale.apply(x, 0.3).data, y.data)


@restarts
def test_more_threads_than_the_pool_has_start_the_compiler_again_and_fewer_do_not() -> None:
    threads = runtime._Program.threads + 1
    before = runtime.session().program
    for wanted, program in ((threads, before + 1), (1, before + 1), (threads, before + 1)):
        with runtime.using(Settings(threads=wanted)):
            np.testing.assert_array_equal(Scale.apply(tensor(np.ones(2000)), 0.9).data, 1.0)
            assert runtime.session().program == program


@restarts
def test_arrays_of_the_compiler_end_with_their_program_and_say_so() -> None:
    old = ti.ndarray(ti.f64, 3)
    old.fill(1.0)
    out = np.zeros(3)
    kernels(ti.f64).scale(old, 0.3, out)
    restart()
    runtime.init(precision="f32")
    runtime.init(precision="f64")
    kernels(ti.f64).scale(np.ones(3), 0.3, out)
    with pytest.raises(InputError, match="memory on a device belongs to the settings in force"):
        kernels(ti.f64).scale(old, 0.3, out)
    new = [ti.ndarray(ti.f64, 3) for _ in range(20)]
    for array in new:
        array.fill(2.0)
    del old
    gc.collect()  # frees nothing of the new program
    for array in new:
        kernels(ti.f64).scale(array, 0.4, out)
        assert out.tolist() == [1.0] * 3


@restarts
def test_many_switches_with_launches_and_gradients_leave_no_objects_and_change_no_number() -> None:
    kept: list[Any] = []
    objects = []
    for turn in range(240):
        precision, threads = ("f64", "f32")[turn % 2], 1 + turn // 2 % 2
        if turn % 60 == 59:
            gc.collect()
            objects.append(len(gc.get_objects()))
            restart()
        runtime.init(precision=precision, threads=threads)
        x = tensor(np.linspace(0, 1, 1000), requires_grad=True)
        out = np.zeros(1000, x.dtype)
        kept.append((x, Scale.apply(x, 0.3), out, kernels(runtime.real()).scale.bind(x.detach(), 0.3, out)))
        if len(kept) > 5:
            x, y, out, bound = kept.pop(0)
            bound()
            y.sum().backward()
            number = x.dtype.type
            assert_equal_but_for_rounding(y.data, x.data * (number(0.3) + number(0.1)), ulps=2)
            np.testing.assert_array_equal(out, y.data)
            assert_equal_but_for_rounding(x.grad.data, np.full(1000, number(0.3) + number(0.1)), ulps=2)
        assert runtime.settings() == Settings(precision=precision, threads=threads)
    assert objects[-1] < objects[1] + 60  # 120 turns later, less than one for every second


# --- caches


@restarts
def test_cached_values_belong_to_settings_and_end_with_the_program() -> None:
    made = []

    @runtime.cached
    def workspace(size: int) -> np.ndarray:
        made.append(size)
        return np.zeros(size, runtime.real_dtype())

    first = workspace(3)
    with runtime.using(F32):
        assert workspace(3).dtype == np.float32
    assert workspace(3) is first and made == [3, 3]
    restart()
    with runtime.using(F32):
        assert workspace(3).dtype == np.float32
    assert workspace(3) is not first and made == [3] * 4
    workspace.cache_clear()
    workspace(3)
    assert made == [3] * 5


def test_a_cached_value_may_be_dropped_beyond_a_number() -> None:
    made = []

    @runtime.cached(maxsize=1)
    def workspace(size: int) -> int:
        made.append(size)
        return size

    assert [workspace(size) for size in (1, 1, 2, 1)] == [1, 1, 2, 1]
    assert made == [1, 2, 1]


def test_a_cached_property_has_a_value_for_each_precision() -> None:
    class Model:
        @runtime.cached_property
        def mask(self) -> np.ndarray:
            """A mask."""
            return np.ones(2, runtime.real_dtype())

    model, other = Model(), Model()
    first = model.mask
    with runtime.using(F32):
        assert model.mask.dtype == np.float32 and model.mask is model.mask
    assert model.mask is first is not other.mask
    assert Model.__dict__["mask"].__doc__ == "A mask."


# --- devices, the other compiler


@pytest.mark.skipif(not runtime.available("vulkan"), reason="no Vulkan driver")
@restarts
def test_a_switch_to_a_gpu_and_back() -> None:
    gpu = Settings(arch="vulkan", precision="f32")
    x = tensor([1.0, 2.0], requires_grad=True)
    y = Scale.apply(x, 0.3)
    for _ in range(2):
        with runtime.using(gpu):
            z = tensor([1.0, 2.0], requires_grad=True)
            w = Scale.apply(z, 0.3)
            memory, out = device.to_device(z.data), device.device_array((2,))
            bound = kernels(ti.f32).scale.bind(memory, 0.3, out)
            bound()
            np.testing.assert_array_equal(device.to_host(out, (2,)), w.data)
            with pytest.raises(InputError, match=r"ScaleBackward: it belongs to .*arch='cpu'.*arch='vulkan'"):
                y.sum().backward()
            w.sum().backward()
            assert z.grad is not None
            w = Scale.apply(z, 0.3)
        with pytest.raises(InputError, match="in force"):
            bound()
        with pytest.raises(InputError, match="ScaleBackward: it belongs to"):
            w.sum().backward()
        with pytest.raises(InputError, match="memory on a device"):
            device.to_host(out, (2,))
        with runtime.using(gpu):
            w.sum().backward()  # its memory is the host's
            with pytest.raises(InputError, match="memory on a device"):
                bound()
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.data, np.full(2, 0.4))


ASSIGNED_ANEW = __file__.replace("test_settings", "test_vectors_assigned_anew")
RESTARTING = [
    f"{__file__}::{name}" for name, test in globals().items() if restarts.mark in getattr(test, "pytestmark", [])
]


@pytest.mark.skipif(OWN_PROCESS in os.environ, reason="this is that process")
@pytest.mark.timeout(1800)  # it is all the tests of this file
@pytest.mark.parametrize(
    ("compiler", "tests"),
    [(runtime.compiler, RESTARTING), pytest.param(OTHER, [__file__, ASSIGNED_ANEW], marks=needs_other)],
)
def test_what_starts_the_compiler_again_holds_and_all_of_this_under_the_other_one(
    compiler: str, tests: list[str]
) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
    env = {**os.environ, "SIMPHYS_COMPILER": compiler, OWN_PROCESS: "yes"}
    env["SIMPHYS_TEST_ARCH"], env["SIMPHYS_TEST_PRECISION"] = "cpu", "f64"  # they switch to a GPU by themselves
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stdout[-3000:]
