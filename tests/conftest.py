"""Settings common to all tests."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from .helpers.full_suite import Suite

HERE = Path(__file__).parent

os.environ.setdefault("MPLBACKEND", "Agg")  # before anything imports matplotlib: pictures need no screen
os.environ.setdefault("SIMPHYS_THREADS", "1")  # of scenes, whatever the machine: tests share its cores
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # of linear algebra: on a busy machine its threads wait for each other, and others

# The first example compiles kernels, so its time says nothing about the code under test. The same examples are drawn on
# every run; to look for others is the work of the thorough profile. Nor is a machine that is busy while they are drawn
# a reason to fail, which is what `too_slow` looks at.
settings.register_profile(
    "simphys",
    parent=settings.get_profile("default"),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("simphys"), max_examples=2000, derandomize=False)
settings.load_profile("simphys")


LONGEST = (
    "tests/record/test_record_crash.py",
    "tests/test_certificates.py",
    "tests/simulators/test_contract.py",
    "tests/simulators/rigid/test_push.py",
    "tests/simulators/rigid/test_walker_2d.py",
    "tests/test_scenes.py",
    "tests/docs/test_own_package.py",
)
"""Files that take longest come first: else one process would still be at them when the others have finished.

The first one forks its process hundreds of times, which takes long once that is large."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--mutants",
        choices=["sample", "all"],
        default="sample",
        help="tests/mutation: some mutants of each adjoint and tangent rule (the default), or all of them",
    )
    wider = parser.getgroup("simphys").addoption
    wider("--landing", action="store_true", help="what must pass before a change lands: more of full_suite.txt")
    wider("--full", action="store_true", help="the whole proof: also the tests that full_suite.txt lists")


def suite_of(config: pytest.Config) -> Suite:
    """The suite that was asked for; a test that is named always runs, and all but the slowest of a named file."""
    if config.getoption("--full") or any("::" in argument for argument in config.args):
        return "full"
    named = any(Path(argument).resolve() not in (HERE, HERE.parent) for argument in config.args)
    return "landing" if named or config.getoption("--landing") else "quick"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import a file of which no test would run, unless it is named."""
    from .helpers.full_suite import waits_whole

    named = any(argument.endswith(".py") for argument in config.args)
    if named or collection_path.suffix != ".py" or not collection_path.is_relative_to(HERE):
        return None
    return waits_whole(str(collection_path.relative_to(HERE)), suite_of(config)) or None


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use every processor that this process may use, but none besides it for a single file."""
    from simphys.autograd.kernels.threads import count_cores

    chosen = [argument.partition("::")[0] for argument in config.args]
    return 0 if len(chosen) == 1 and chosen[0].endswith(".py") else count_cores()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what waits for a wider suite than is asked for; sort the rest."""
    from .helpers.full_suite import waits

    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(LONGEST)))
    suite = suite_of(config)
    left_out = [item for item in items if waits(item.nodeid, suite)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not waits(item.nodeid, suite)]


def pytest_collection_finish() -> None:
    """Exclude ten thousand tests and all that they import from garbage collection: they live as long as the process."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _freeze_after_module() -> Iterator[None]:
    """Exclude compiled kernels from garbage collection, likewise."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _keep_settings() -> Iterator[None]:
    """Restore the settings of the process after a test that loads a scene with others."""
    from simphys.autograd import runtime

    with runtime.using(runtime.settings()):
        yield


@pytest.fixture
def verified_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile each kernel, even if it is stored, and fail if it is not the one that its fingerprint stands for."""
    from simphys.autograd.kernels import stored

    monkeypatch.setattr(stored, "verifying", True)


@pytest.fixture(autouse=True)
def _overlaps_are_declared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail after a launch whose arguments share memory without a declared reason, if these are asked for."""
    if not os.environ.get("SIMPHYS_TEST_OVERLAPS") or request.path.name == "test_overlaps.py":
        yield
        return
    from .helpers.overlaps import recorded_overlaps

    with recorded_overlaps() as found:
        yield
    assert not [overlap for overlap in found if not overlap.find_reason()]


def pytest_configure(config: pytest.Config) -> None:
    """Start the compiler on the arch and in the precision asked for, perhaps with checks of all indices in kernels."""
    from simphys.autograd import runtime
    from simphys.autograd.kernels import stored

    stored.verifying = bool(os.environ.get("SIMPHYS_TEST_KERNELS"))  # else they are a user's: see verified_kernels
    if os.environ.get("SIMPHYS_TEST_BOUNDS"):
        runtime.ti.init = functools.partial(runtime.ti.init, debug=True)
    runtime.init(
        arch=os.environ.get("SIMPHYS_TEST_ARCH", "cpu"),
        precision=os.environ.get("SIMPHYS_TEST_PRECISION", "f64"),
    )


def pytest_unconfigure() -> None:
    """End the compiler's program: it then writes its cache on disk, from which a second run takes its kernels."""
    from simphys.autograd.kernels.runtime import ti

    ti.reset()
