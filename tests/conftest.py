"""Settings common to all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")  # before anything imports matplotlib: pictures need no screen

# The first example compiles kernels, so its time says nothing about the code under test.
settings.register_profile("simphys", parent=settings(), deadline=None)
settings.register_profile("thorough", settings.get_profile("simphys"), max_examples=2000)
settings.load_profile("simphys")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--mutants",
        choices=["sample", "all"],
        default="sample",
        help="tests/mutation: some mutants of each adjoint and tangent rule (the default), or all of them",
    )

    parser.addoption(
        "--certificates",
        choices=["quick", "all"],
        default="quick",
        help="certificates and fits of scenes: without the longest (the default), or all of them",
    )


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


def pytest_configure(config: pytest.Config) -> None:
    """Start the compiler on the arch and in the precision asked for."""
    from simphys.autograd import runtime

    runtime.init(
        arch=os.environ.get("SIMPHYS_TEST_ARCH", "cpu"),
        precision=os.environ.get("SIMPHYS_TEST_PRECISION", "f64"),
    )
