"""The compiler starts with settings that exist on this machine, and refuses others with the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from simphys.autograd import InputError, runtime, tensor
from simphys.autograd.kernels import compiler, cuda, device, threads, vulkan

from ..helpers.compilers import OTHER, needs_other

ATTEMPT = """
try:
    runtime.init({settings})
    print("not refused")
except InputError as error:
    assert not runtime.initialised()
    print(error)
"""
PRELUDE = "import numpy as np\nfrom simphys.autograd import InputError, runtime, tensor\n"


def in_new_process(program: str, **environment: str) -> str:
    """The output of a program in a new process, in which the compiler was not started yet."""
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program], env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refusals(*settings: str, **environment: str) -> list[str]:
    """The InputErrors of runtime.init, tried in turn in a new process, which must be able to start properly then."""
    program = "".join([ATTEMPT.format(settings=each) for each in settings])
    return in_new_process(f"{program}\nruntime.init()", **environment).splitlines()


@pytest.mark.gpu
def test_init_again_with_the_same_settings_does_nothing() -> None:
    settings = runtime.settings()
    again = runtime.init(arch=settings.arch, precision=settings.precision, threads=settings.threads)
    assert again is settings and runtime.initialised()


@pytest.mark.gpu
def test_the_precision_gives_the_dtype_of_reals_and_of_new_tensors() -> None:
    expected = {"f32": np.float32, "f64": np.float64}[runtime.settings().precision]
    assert runtime.real_dtype() == expected
    assert tensor(1.5).dtype == expected
    assert tensor([1, 2]).dtype.kind == "i"


def test_single_precision_holds_for_tensors_and_kernels_of_the_process() -> None:
    program = "runtime.init(precision='f32'); print(tensor(1.5).dtype, runtime.real() is runtime.ti.f32)"
    assert in_new_process(program) == "float32 True"


def test_the_defaults_are_taken_by_the_first_use_and_nothing_is_printed() -> None:
    assert in_new_process("print(runtime.initialised(), runtime.settings())") == (
        "False Settings(arch='cpu', precision='f64', threads=1)"
    )


@pytest.mark.skipif(runtime.available("cuda"), reason="this machine has a CUDA device")
def test_a_gpu_that_is_not_there_is_refused_not_replaced() -> None:
    (message,) = refusals("arch='cuda'")
    assert message.startswith("runtime.init: arch=cuda must exist on this machine; found ")
    assert message.endswith(" without a cuda device. Use arch=cpu, or install the device's driver.")


REFUSED = {
    "arch='tpu'": "arch is one of ('cpu', 'cuda', 'vulkan', 'metal', 'gpu'); found tpu",
    "precision='f16'": "precision is f32 or f64; found f16",
    "threads=0": "threads is at least 1; found 0",
    "threads=100000": "threads is at most 4 times the cores of this machine",
    "compiler='clang'": "compiler is one of ('auto', 'quadrants', 'taichi'); found clang",
    "arch='vulkan', precision='f64'": "arch=vulkan computes in f32 only; found precision=f64",
    "arch='metal', precision='f64'": "arch=metal computes in f32 only; found precision=f64",
}
"""Settings that do not exist, or that devices lack, and what is said of them."""


def test_settings_that_do_not_exist_are_refused() -> None:
    told = refusals(*REFUSED)
    assert len(told) == len(REFUSED)
    for found, message in zip(told, REFUSED.values(), strict=True):
        assert message in found


def test_an_unknown_compiler_is_refused() -> None:
    env = {**os.environ, "SIMPHYS_COMPILER": "clang"}
    done = subprocess.run([sys.executable, "-c", PRELUDE], env=env, capture_output=True, text=True, timeout=240)
    assert "the kernel compiler is one of ('auto', 'quadrants', 'taichi'); found clang" in done.stderr


@needs_other
def test_the_other_compiler_is_held_to_the_same_settings() -> None:
    program = f"print(runtime.init(precision='f32'), runtime.info()['compiler'], {OTHER!r} in runtime.info())"
    expected = f"Settings(arch='cpu', precision='f32', threads=1) {OTHER} True"
    assert in_new_process(program, SIMPHYS_COMPILER=OTHER) == expected
    refused = {"precision='f16'": "precision is f32 or f64"}
    if not runtime.available("cuda"):
        refused["arch='cuda'"] = "arch=cuda must exist"
    told = refusals(*refused, SIMPHYS_COMPILER=OTHER)
    assert all(message in found for found, message in zip(told, refused.values(), strict=True))


@needs_other
def test_the_newer_compiler_is_taken_unless_another_is_asked_for() -> None:
    show = "print(runtime.compiler)"
    assert in_new_process(show, SIMPHYS_COMPILER="auto") == in_new_process(show, SIMPHYS_COMPILER="") == "quadrants"
    assert in_new_process(show, SIMPHYS_COMPILER="taichi") == "taichi"


def test_without_one_compiler_the_other_is_taken() -> None:
    """A finder that knows no such package stands for an environment without it."""
    program = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == sys.argv[1] else found(name, *rest)
from simphys.autograd.kernels import compiler
try:
    print(compiler.chosen())
except Exception as error:
    print(error)
"""
    for gone in ("quadrants", "taichi"):
        left = next(name for name in ("quadrants", "taichi") if name != gone)
        if not compiler.installed(left):
            continue  # this environment has one compiler
        run = [sys.executable, "-c", program, gone]
        environment = {name: value for name, value in os.environ.items() if name != "SIMPHYS_COMPILER"}
        done = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == left
        asked = subprocess.run(run, env={**environment, "SIMPHYS_COMPILER": gone}, capture_output=True, text=True)
        message = f"SIMPHYS_COMPILER: {gone} must be installed; found no such package. Run pip install {gone}."
        assert message in asked.stdout + asked.stderr


def test_the_remains_of_a_removed_compiler_are_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip uninstall` leaves a folder where it finds files that it did not install."""
    (tmp_path / "removed" / "__pycache__").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_spec("removed") is not None and not compiler.installed("removed")
    assert compiler.installed(runtime.compiler) and not compiler.installed("never_there")


def test_a_process_keeps_its_compiler() -> None:
    assert runtime.init(compiler=runtime.compiler) == runtime.init(compiler="auto") == runtime.settings()
    with pytest.raises(InputError, match=rf"{runtime.compiler} in use, {OTHER} asked for. Start Python with") as found:
        runtime.init(compiler=OTHER)
    assert f"SIMPHYS_COMPILER={OTHER}" in str(found.value)


@pytest.mark.gpu
def test_info_has_the_entries_for_a_recording() -> None:
    info = runtime.info()
    settings = runtime.settings()
    assert (info["arch"], info["precision"], info["threads"]) == (settings.arch, settings.precision, "1")
    assert info["compiler"] == runtime.compiler and info[runtime.compiler] and info["numpy"] == np.__version__


def test_automatic_threads_are_those_of_the_environment_or_the_free_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMPHYS_THREADS", "3")
    assert threads.count_threads("auto") == 3 and threads.count_threads(2) == 2
    monkeypatch.delenv("SIMPHYS_THREADS")
    monkeypatch.setattr(threads, "count_cores", lambda: 2)
    assert threads.count_threads("auto") == 2
    monkeypatch.setattr(threads, "count_cores", lambda: 64)
    assert threads.count_threads("auto") == threads.MOST_AUTOMATIC
    assert threads.count_threads(1) == 1


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5"])
def test_an_unusable_number_of_threads_in_the_environment_is_refused(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMPHYS_THREADS", given)
    with pytest.raises(
        InputError, match=f"environment variable SIMPHYS_THREADS: threads is at least 1; found '?{given}"
    ):
        threads.count_threads("auto")


def test_large_work_goes_parallel_only_where_there_are_threads() -> None:
    program = "runtime.init(threads={}); print(runtime.parallel(10.0), runtime.parallel(1e6))"
    both = "\n".join([program.format(threads) for threads in (1, 2)])
    assert in_new_process(both) == "False False\nFalse True"


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(3,), (0,), (4, 2), (0, 2)])
def test_values_survive_the_way_to_the_device_and_back(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=runtime.real_dtype()).reshape(shape)
    np.testing.assert_array_equal(device.to_host(device.to_device(array), shape), array)
    np.testing.assert_array_equal(device.to_host(device.to_device(array, axes=len(shape) - 1), shape), array)


@pytest.mark.gpu
def test_working_memory_has_the_requested_shape_and_precision() -> None:
    for array, shape in ((device.device_array((3,)), (3,)), (device.device_array((3,), element=(2,)), (3, 2))):
        values = device.to_host(array, shape)
        assert values.shape == shape and values.dtype == runtime.real_dtype()


@pytest.mark.parametrize(
    ("present", "chosen"),
    [({"cuda", "vulkan"}, "cuda"), ({"vulkan", "metal"}, "metal"), ({"vulkan"}, "vulkan")],
)
def test_a_gpu_is_the_first_that_is_here(present: set[str], chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "available", lambda arch: arch == "cpu" or arch in present)
    assert runtime.find_gpu() == chosen


def test_where_there_is_no_gpu_it_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "available", lambda arch: arch == "cpu")
    with pytest.raises(InputError, match=r"arch=gpu needs a GPU on this machine; found .* without a device of cuda"):
        runtime.init(arch="gpu", precision="f32")


def test_a_driver_is_one_in_software_if_it_has_no_other_device(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, expected in (
        ((), None),
        ((("a GPU", 2), ("llvmpipe", vulkan.CPU_TYPE)), None),
        ((("llvmpipe", vulkan.CPU_TYPE),), "llvmpipe"),
    ):
        monkeypatch.setattr(vulkan, "devices", lambda found=found: found)
        assert vulkan.software_driver() == expected


@pytest.mark.skipif(vulkan.software_driver() is None, reason="Vulkan has a GPU here, or no driver")
def test_a_driver_in_software_is_named_by_a_warning() -> None:
    program = "import warnings\nwith warnings.catch_warnings(record=True) as found:\n"
    program += "    runtime.init(arch='vulkan', precision='f32')\nprint(found[0].message)"
    told = in_new_process(program)
    assert told.startswith("runtime.init: arch=vulkan computes on the CPU, by the software driver ")
    assert str(vulkan.software_driver()) in told


def test_cuda_computes_exactly_in_f64_as_its_fast_roots_have_half_the_digits() -> None:
    exact = [
        (arch, precision)
        for arch, precision in (("cpu", "f64"), ("cpu", "f32"), ("cuda", "f64"), ("cuda", "f32"), ("vulkan", "f32"))
        if not runtime.is_arithmetic_fast(runtime.Settings(arch=arch, precision=precision, threads=1))
    ]
    assert exact == [("cuda", "f64")]


def test_devices_of_cuda_are_named_where_the_arch_is_there_alone() -> None:
    assert not cuda.devices() or runtime.available("cuda")
