"""Every term of the adjoints and tangents of advection, and of sources of smoke, is needed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.autograd.proof.mutation import ERRORS
from simphys.numerics import multilinear
from simphys.simulator import Array
from simphys.simulators.smoke import advect, extended, maccormack, sampling, source, transport
from simphys.simulators.smoke.model import Smoke

from ..simulators.smoke import test_advect
from ..simulators.smoke.flows import CHANNEL, some, velocity
from .margins import room, with_margins
from .suite import *  # noqa: F403 - the tests of all sweeps
from .sweep import Sweep

EACH = 1
"""Number of mutants per rule in a sample: most compile a kernel."""

EQUIVALENT: dict[str, str] = {
    "*: spread > 1 -> *": "in this form a loop runs on one thread",
    "*.adj_extend: dim == 3 -> *": "axes of a GPU's loops; the processor has one",
    "slopes: 0 * r -> r": "each entry is written",
    "adj_corners: 0 * f -> f": "each entry is written",
    "adj_limit: 0 * adj -> 0": "the same number",
}

ALSO = (*ERRORS, TypeError, AttributeError, RuntimeError, KeyError)
"""Errors of mutants; the compiler raises RuntimeError for an unused variable."""


def moved(advection: str, module: Any = advect) -> None:
    """Check a staggered grid with sides and lines of two blocks; velocities also on a collocated one with walls."""
    channel = test_advect.model_of(3, 18, boundaries=CHANNEL, advection=advection)
    check(module.AdvectVelocity, channel, velocity(channel), some(4, 2, seed=3))
    check(module.AdvectSmoke, channel, some(3, 18), velocity(channel), some(4, seed=3))
    walls = ("closed", "closed", "periodic", "periodic")
    beside = test_advect.model_of(5, 4, grid="collocated", boundaries=walls, advection=advection)
    check(module.AdvectVelocity, beside, velocity(beside), some(4, 2, seed=3))


def check(function: Any, of: Smoke, *inputs: Any) -> None:
    gradcheck(lambda *x: function.apply(of, *x), inputs, mode="projected", repeats=1)


@contextmanager
def workspaces(**parts: Any) -> Iterator[None]:
    """Make transports from other modules, with room around all of their arrays, within a context."""
    get = transport.Workspace.get

    def get_with_margins(self: Any, name: str, count: int) -> Array:
        if name not in self._arrays:
            self._arrays[name] = with_margins(get(self, name, count))
        found: Array = self._arrays[name]
        return found

    advect._space.cache_clear()
    with ExitStack() as stack:
        stack.enter_context(room())
        stack.enter_context(patch.object(transport.Workspace, "get", get_with_margins))
        for name, part in parts.items():
            stack.enter_context(patch.object(transport, name, part))
        yield
    advect._space.cache_clear()


def reusing(original: Any, module: Any, *new: str) -> SimpleNamespace:
    """Take the original loops except for the `new` ones of another module, so that nothing else is compiled."""

    @functools.cache
    def kernels(*variant: Any) -> SimpleNamespace:
        found = module.kernels(*variant)
        return SimpleNamespace(**{**vars(original.kernels(*variant)), **{name: getattr(found, name) for name in new}})

    return SimpleNamespace(kernels=kernels)


def samples(*loops: str) -> Callable[[Any], None]:
    def checked(module: Any) -> None:
        with workspaces(sampling=reusing(sampling, module, *loops)):
            moved("semi_lagrangian")

    return checked


def corrections(*loops: str) -> Callable[[Any], None]:
    def checked(module: Any) -> None:
        with workspaces(maccormack=reusing(maccormack, module, *loops)):
            moved("maccormack")
            if "adj_correct" in loops:
                test_advect.test_limited_smoke_is_that_of_the_cell_which_limits_it()
                test_advect.test_smoke_at_the_limit_itself_is_not_limited()

    return checked


def interpolation(module: Any) -> None:
    rules = {name: getattr(module, name) for name in ("interpolate", "jvp_interpolate", "adj_corners", "slopes")}
    with patch.multiple(sampling, **rules), patch.object(maccormack, "adj_interpolate", module.adj_interpolate):
        # No cache may keep loops of the module.
        loops = {each.__name__.rsplit(".")[-1]: each.kernels.__wrapped__ for each in (sampling, maccormack)}
        with workspaces(**{name: SimpleNamespace(kernels=functools.cache(made)) for name, made in loops.items()}):
            moved("semi_lagrangian")
            moved("maccormack")


def ghosts(module: Any) -> None:
    """Loops that bring arrays to extended ones and back, with their ghosts."""
    with workspaces(extended=module):
        moved("maccormack")


def transports(module: Any) -> None:
    with workspaces(), patch.object(advect, "Transport", module.Transport):
        for advection in ("semi_lagrangian", "maccormack"):
            moved(advection)


def functions(module: Any) -> None:
    for advection in ("semi_lagrangian", "maccormack"):
        moved(advection, module)
    channel = test_advect.model_of(5, 4, boundaries=CHANNEL)
    given = velocity(channel), some(4, seed=3).detach()
    check(module.AdvectSmoke, channel, some(5, 4).detach(), *given)


def added(module: Any) -> None:
    model = test_advect.model_of(5, 4)
    inputs = some(5, 4), some(5, 4, seed=3)
    gradcheck(lambda *x: module.AddSmoke.apply(model, *x, model.dt), inputs, mode="projected", repeats=1)
    dot_product_test(lambda *x: module.AddSmoke.apply(model, *x, model.dt), inputs)


sweep_of = functools.partial(Sweep, errors=ALSO, equivalent=EQUIVALENT)

SWEEPS = [
    sweep_of(multilinear, ("slopes", "adj_*", "jvp_*"), interpolation),
    sweep_of(sampling, ("adj_*", "*.adj_*"), samples("adj_sample")),
    sweep_of(sampling, ("*.jvp_*",), samples("jvp_sample")),
    sweep_of(maccormack, ("adj_*", "*.adj_*"), corrections("adj_correct")),
    sweep_of(maccormack, ("jvp_*", "*.jvp_*"), corrections("jvp_correct")),
    sweep_of(extended, ("*.adj_extend", "*.pass_on"), ghosts),
    sweep_of(transport, ("Transport.pull", "Transport.push"), transports),
    sweep_of(advect, ("adj_*", "jvp_*", "_Space.take_adj_velocity"), functions),
    sweep_of(source, ("adj_*", "jvp_*"), added),
]
