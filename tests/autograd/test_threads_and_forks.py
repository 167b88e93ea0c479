"""Two threads, a fork and a pickled error: each is right, or an error that says what to do."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Function, InputError, Tensor, is_grad_enabled, ops, tensor
from simphys.autograd.errors import GraphError, UnphysicalValue
from simphys.autograd.kernels.memory import ExportError
from simphys.autograd.look.anomaly import AnomalyError, detect_anomaly
from simphys.autograd.mode import switch
from simphys.rollout import BlowUp
from simphys.scenefile.errors import ConfigError


def in_a_thread(function: Callable[[], Any]) -> Any:
    """The result of a function that runs in another thread, or the error that it raised."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run, name="worker")
    thread.start()
    thread.join()
    return found[0]


def gradient() -> float:
    x = tensor(3.0, requires_grad=True)
    (x * x).backward()
    assert x.grad is not None
    return x.grad.item()


def test_a_second_thread_is_refused_while_the_first_lives_and_recording_stays_on() -> None:
    assert gradient() == 6
    x = tensor(3.0, requires_grad=True)
    y = x * x
    for call in (gradient, y.backward, lambda: ops.sin(x)):
        error = in_a_thread(call)
        assert isinstance(error, InputError)
        assert "found a call in worker, while MainThread is alive. Keep to one thread" in str(error)
    assert is_grad_enabled() and gradient() == 6


def test_a_second_thread_inside_a_forward_is_refused() -> None:
    class Waiting(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            assert isinstance(in_a_thread(gradient), InputError)
            return x.data * 2

        @staticmethod
        def backward(ctx: Any, adj: Tensor) -> Any:
            assert isinstance(in_a_thread(gradient), InputError)
            return adj.data * 2

    x = tensor(3.0, requires_grad=True)
    Waiting.apply(x).backward()
    assert x.grad is not None and x.grad.item() == 2 and is_grad_enabled()


def test_a_thread_takes_over_from_one_that_has_ended() -> None:
    before, switch.thread = switch.thread, 0
    try:
        assert in_a_thread(gradient) == 6
        assert gradient() == 6
    finally:
        switch.thread = before


PROGRAM = """
import multiprocessing, sys, threading
import numpy as np
from simphys.autograd import InputError, kernel, runtime
ti = runtime.ti
Reals = ti.types.ndarray(dtype=ti.f64, ndim=1)

@kernel
def add(x: Reals, by: ti.f64):
    for i in range(100):
        x[i] += by

@kernel
def double(x: Reals):
    for i in range(100):
        x[i] *= 2

x = np.ones(100)
runtime.init(threads=THREADS)
add(x, 1.0)
bound = add.bind(x, 1.0)

def attempt(call):
    try:
        call()
        print("ran", flush=True)
    except InputError as error:
        print(error, flush=True)
"""
FORK = """
def child():
    for call in (bound, lambda: add(x, 1.0), lambda: double(x), lambda: runtime.init(precision="f32")):
        attempt(call)

process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join(300)
print(process.exitcode)
add(x, 1.0)
bound()
print(x[0])
"""
THREAD = """
thread = threading.Thread(target=attempt, args=(lambda: double(x),), name="worker")
thread.start()
thread.join()
double(x)
print(x[0])
"""


def output(tmp_path: Any, text: str, threads: int = 1) -> list[str]:
    """Lines of the program followed by `text`."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.replace("THREADS", str(threads)) + text)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith(("ran", "kernel", "runtime", "0", "3", "4"))]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_launch_after_a_fork_is_an_error_in_the_child(tmp_path: Any, threads: int, broken: str = "") -> None:
    *children, code, value = output(tmp_path, broken + FORK, threads)
    assert len(children) == 4 and (code, value) == ("0", "4.0")
    for line in children:
        assert "kernels run in the process that started the compiler; found a child made by fork" in line


def test_a_first_launch_in_another_thread_is_refused(tmp_path: Any, broken: str = "") -> None:
    refused, value = output(tmp_path, broken + THREAD)
    assert refused.startswith("kernel double: kernels are compiled in the thread that started the compiler; found ")
    assert value == "4.0"


def anomaly() -> AnomalyError:
    x = tensor([0.0], requires_grad=True)
    with pytest.raises(AnomalyError) as caught, detect_anomaly():
        ops.sqrt(x).sum().backward()
    return caught.value


ERRORS: dict[str, Callable[[], Exception]] = {
    "InputError": lambda: InputError("s", "c", tensor([1.0], requires_grad=True) * 2, "r"),
    "UnphysicalValue": lambda: UnphysicalValue("s", "c", 3, "r"),
    "ExportError": lambda: ExportError("s", "c", np.ones(2), "r"),
    "ConfigError": lambda: ConfigError([InputError("a", "b", "c", "d"), InputError("e", "f", "g", "h")]),
    "BlowUp": lambda: BlowUp(step=3, field="x", element=(1, 2), value=np.inf, time=0.5, cause="c"),
    "AnomalyError": anomaly,
    "GraphError": lambda: GraphError("freed"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_reach_another_process_as_they_are(name: str) -> None:
    error = ERRORS[name]()
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and again.args == error.args
    assert again.__dict__.keys() == error.__dict__.keys()
    assert list(map(str, getattr(again, "errors", ()))) == list(map(str, getattr(error, "errors", ())))


def test_a_long_value_is_cut_in_the_message_and_whole_in_the_error() -> None:
    error = InputError("s" * 5000, "c", list(range(10_000)), "r")
    assert len(str(error)) < 2000 and "[0, 1, 2, " in str(error) and " ... " in str(error)
    assert error.found == list(range(10_000))
    assert str(InputError("s", "c", "f" * 700, "r")) == f"s: c; found {'f' * 700}. r"
