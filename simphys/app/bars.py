"""Bars of progress in notebooks: shown by themselves while a cell fits, simulates or sweeps."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simphys.optimize import IterationRecord, Result

SECONDS = 0.2
"""Least time between two changes of a bar [s]."""


class Bar:
    """A bar below a cell of a notebook, which changes in place."""

    def __init__(self) -> None:
        self._began = self._next = time.monotonic()
        self._handle: Any = None

    def update(self, line: str, done: int, whole: int) -> None:
        """Show how much is done, with the time left; the end always, what is between now and then."""
        now = time.monotonic()
        if now < self._next and done < whole:
            return
        self._next = now + SECONDS
        spent = now - self._began
        time_left = f", about {(whole - done) * spent / done:.0f} s left" if 0 < done < whole else f", {spent:.1f} s"
        shown = _Html(
            f'<progress aria-label="{escape(line)}" value="{done}" max="{whole}"></progress> {escape(line + time_left)}'
        )
        if self._handle is None:
            from IPython.display import display

            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)


class _Html:
    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "progress"

    def _repr_html_(self) -> str:
        return self._text


def in_notebook() -> bool:
    """True in a cell of a notebook: a kernel of IPython runs, not its prompt."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def bar_of_steps() -> Callable[[int, int], None] | None:
    """Make a bar for a simulation; None outside of notebooks."""
    if not in_notebook():
        return None
    bar = Bar()
    return lambda step, steps: bar.update(f"step {step} of {steps}", step, steps)


class BarOfIterations(Bar):
    """A bar for a fit of at most so many iterations a stage: called at each, and ended by `end_bar`."""

    def __init__(self, iterations: int) -> None:
        super().__init__()
        self._iterations = iterations

    def __call__(self, record: IterationRecord) -> None:
        line = f"iteration {record.index} of at most {self._iterations}, loss {record.loss:.6g}"
        stage = f"stage {record.stage + 1} of {record.stages}, " if record.stages > 1 else ""
        done = record.stage * self._iterations + record.index
        self.update(stage + line, done, record.stages * self._iterations)


def end_bar(bar: object, result: Result) -> None:
    """Show how a search ended, often long before the largest number of iterations; nothing where that is no bar."""
    if isinstance(bar, BarOfIterations):
        count = len(result.history) - 1
        bar.update(f"{result.status} after {count} iteration{'s' * (count != 1)}, loss {result.loss:.6g}", 1, 1)


def bar_of_iterations(iterations: int) -> BarOfIterations | None:
    """Make a bar for a fit; None outside of notebooks."""
    return BarOfIterations(iterations) if in_notebook() else None


def bar_of_members() -> Callable[[int, int, int, int], None] | None:
    """Make a bar for a sweep; None outside of notebooks."""
    if not in_notebook():
        return None
    bar = Bar()

    def update(done: int, running: int, bad: int, whole: int) -> None:
        bar.update(f"{done} of {whole} members, {bad} without a result", done, whole)

    return update
