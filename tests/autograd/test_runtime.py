"""The compiler starts with settings that exist on this machine, and refuses others with the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from simphys.autograd import runtime, tensor

PRELUDE = "import numpy as np\nfrom simphys.autograd import InputError, runtime, tensor\n"


def in_new_process(program: str, **environment: str) -> str:
    """The output of a program in a new process, in which the compiler was not started yet."""
    env = {**os.environ, **environment}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refusal(settings: str, **environment: str) -> str:
    """The InputError of runtime.init in a new process, which must leave the process able to start properly."""
    program = f"""
try:
    runtime.init({settings})
except InputError as error:
    assert not runtime.initialised()
    print(error)
    runtime.init()
"""
    return in_new_process(program, **environment)


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
    assert in_new_process("runtime.settings()") == ""
    assert in_new_process("print(runtime.initialised(), runtime.settings())") == (
        "False Settings(arch='cpu', precision='f64', threads=1)"
    )


@pytest.mark.skipif(runtime.available("cuda"), reason="this machine has a CUDA device")
def test_a_gpu_that_is_not_there_is_refused_not_replaced() -> None:
    message = refusal("arch='cuda'")
    assert message.startswith("runtime.init: arch=cuda must exist on this machine; found Linux without a cuda device.")
    assert message.endswith("Use arch=cpu, or install the device's driver.")


@pytest.mark.parametrize("arch", ["vulkan", "metal"])
def test_double_precision_is_refused_where_devices_lack_it(arch: str) -> None:
    assert f"arch={arch} computes in f32 only; found precision=f64" in refusal(f"arch='{arch}', precision='f64'")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("arch='gpu'", "arch is one of ('cpu', 'cuda', 'vulkan', 'metal'); found gpu"),
        ("precision='f16'", "precision is f32 or f64; found f16"),
        ("threads=0", "threads is at least 1; found 0"),
    ],
)
def test_settings_that_do_not_exist_are_refused(settings: str, message: str) -> None:
    assert message in refusal(settings)


def test_an_unknown_compiler_is_refused() -> None:
    env = {**os.environ, "SIMPHYS_COMPILER": "clang"}
    done = subprocess.run([sys.executable, "-c", PRELUDE], env=env, capture_output=True, text=True, timeout=120)
    assert "the kernel compiler is one of ('taichi', 'quadrants'); found clang" in done.stderr


@pytest.mark.skipif(find_spec("quadrants") is None, reason="the extra `quadrants` is not installed")
def test_quadrants_is_held_to_the_same_settings() -> None:
    program = "print(runtime.init(precision='f32'), runtime.info()['compiler'], 'quadrants' in runtime.info())"
    expected = "Settings(arch='cpu', precision='f32', threads=1) quadrants True"
    assert in_new_process(program, SIMPHYS_COMPILER="quadrants") == expected
    assert "precision is f32 or f64" in refusal("precision='f16'", SIMPHYS_COMPILER="quadrants")
    if not runtime.available("cuda"):
        assert "arch=cuda must exist" in refusal("arch='cuda'", SIMPHYS_COMPILER="quadrants")


@pytest.mark.gpu
def test_info_has_the_entries_for_a_recording() -> None:
    info = runtime.info()
    settings = runtime.settings()
    assert (info["arch"], info["precision"], info["threads"]) == (settings.arch, settings.precision, "1")
    assert info["compiler"] == runtime.compiler and info[runtime.compiler] and info["numpy"] == np.__version__


def test_large_work_goes_parallel_only_where_there_are_threads() -> None:
    program = "runtime.init(threads={}); print(runtime.parallel(10.0), runtime.parallel(1e6))"
    assert in_new_process(program.format(1)) == "False False"
    assert in_new_process(program.format(2)) == "False True"


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(3,), (0,), (4, 2), (0, 2)])
def test_values_survive_the_way_to_the_device_and_back(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=runtime.real_dtype()).reshape(shape)
    np.testing.assert_array_equal(runtime.to_host(runtime.to_device(array), shape), array)
    np.testing.assert_array_equal(runtime.to_host(runtime.to_device(array, vector=len(shape) > 1), shape), array)


@pytest.mark.gpu
def test_working_memory_has_the_requested_shape_and_precision() -> None:
    for array, shape in ((runtime.device_array((3,)), (3,)), (runtime.device_array((3,), components=2), (3, 2))):
        values = runtime.to_host(array, shape)
        assert values.shape == shape and values.dtype == runtime.real_dtype()
