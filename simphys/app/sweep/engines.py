"""Engines of sweeps: executors of the standard library's kind, submit(function, argument) -> future."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from simphys.autograd.errors import InputError

from .spec import EngineSection

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DEVICES = "CUDA_VISIBLE_DEVICES"
DEATHS = 20
"""Workers of a dask cluster of ours that may die with a member in their queue; dask's 3 are soon reached by others."""
POLL_S = 0.5
"""Time between two looks at the jobs of a cluster [s]."""


class Engine(Protocol):
    """Place that computes functions: a concurrent.futures.Executor, or any that has its `submit`."""

    def submit(self, function: Callable[[Any], Any], argument: Any, /) -> Any: ...


class InProcess:
    """This process, one function after the other."""

    def submit(self, function: Callable[[Any], Any], argument: Any, /) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(argument))
        except Exception as error:
            future.set_exception(error)
        return future


class Processes:
    """New processes that stay. Each has a pool of its own, so that one that dies takes no other function with it.

    Ctrl-C, which a terminal sends to all of its processes, is left to this one. Each process has `threads` for the
    libraries of numbers, and sees one GPU alone if there are `gpus`.
    """

    def __init__(self, workers: int, *, threads: int = 1, gpus: int = 0) -> None:
        self._threads, self._gpus = threads, gpus
        self._context = multiprocessing.get_context("spawn")
        self._workers: set[Any] = set()
        self._pools = [self._new_pool() for _ in range(workers)]
        self._next = itertools.count()
        self._busy: dict[Future[Any], int] = {}

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=self._context, initializer=_end_with_parent)

    def submit(self, function: Callable[[Any], Any], argument: Any, /) -> Future[Any]:
        self._busy = {future: at for future, at in self._busy.items() if not future.done()}
        free = [at for at in range(len(self._pools)) if at not in self._busy.values()]
        at = free[0] if free else next(self._next) % len(self._pools)
        earlier = set(multiprocessing.active_children())
        with _interrupts_later(), _environment(self._variables(at)):  # a new process inherits both
            try:
                future = self._pools[at].submit(function, argument)
            except BrokenExecutor:  # its process died
                self._pools[at].shutdown(wait=False, cancel_futures=True)
                self._pools[at] = self._new_pool()
                future = self._pools[at].submit(function, argument)
            finally:
                self._workers |= set(multiprocessing.active_children()) - earlier
        self._busy[future] = at
        return future

    def _variables(self, slot: int) -> dict[str, str]:
        """Variables of the environment of the process in a slot."""
        found = {name: str(self._threads) for name in THREADS if name not in os.environ}
        if self._gpus:
            devices = os.environ.get(DEVICES, ",".join([str(gpu) for gpu in range(self._gpus)])).split(",")
            found[DEVICES] = devices[slot % min(self._gpus, len(devices))]
        return found

    def shutdown(self, *, kill: bool = False) -> None:
        """End the processes once they are idle, or at once: the members in hand are then done again later."""
        for pool in self._pools:
            pool.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers if kill else ():
            worker.kill()


def _end_with_parent() -> None:
    """Let this process end when its parent does, however that ends: it would wait for members for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait_for_end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait_for_end, daemon=True).start()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for a block: numerical libraries read them as a process starts."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Put Ctrl-C off until the end of a block, where the system can."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # else it is started within the block, and ends it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def open_engine(chosen: EngineSection, folder: Path) -> Iterator[Engine]:
    """Start an engine for a `with` block. Errors: InputError for a package that is not installed."""
    if chosen.kind == "serial":
        yield InProcess()
    elif chosen.kind == "processes":
        processes = Processes(chosen.workers, threads=chosen.threads, gpus=chosen.gpus)
        try:
            yield processes
        except BaseException:
            processes.shutdown(kill=True)
            raise
        processes.shutdown()
    elif chosen.kind == "dask":
        distributed = _need("distributed", "dask")
        options = {"n_workers": chosen.workers, "threads_per_worker": 1, **chosen.options}
        if "address" in chosen.options:
            options = chosen.options
        with (
            import_module("dask").config.set({"distributed.scheduler.allowed-failures": DEATHS}),
            distributed.Client(**options) as client,
            client.get_executor(retries=0, pure=False) as executor,
        ):
            yield executor
    else:
        submitit = _need("submitit", "slurm")
        executor = submitit.AutoExecutor(folder=folder / "jobs", cluster=chosen.options.get("cluster"))
        executor.update_parameters(**{key: value for key, value in chosen.options.items() if key != "cluster"})
        yield executor


def is_lost(error: BaseException) -> bool:
    """True for the error of a function whose worker died."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ in _LOST


_LOST = ("KilledWorker", "FailedJobError", "UncompletedJobError")
"""Errors of dask and submitit for a function whose worker died."""


def wait_for_some(futures: Collection[Any]) -> list[Any]:
    """Wait until at least one of some futures is done; return those."""
    if all([isinstance(future, Future) for future in futures]):
        return list(wait(futures, return_when=FIRST_COMPLETED).done)
    while not (done := [future for future in futures if future.done()]):  # jobs of submitit
        time.sleep(POLL_S)
    return done


def _need(package: str, extra: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        remedy = f"Run pip install 'simphys[{extra}]', or choose another engine."
        raise InputError("engine.kind", f"{extra} needs the package {package}", "not installed", remedy) from error
