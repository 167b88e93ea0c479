"""Processes that tests interrupt."""

from __future__ import annotations

import signal


def heed_interrupts() -> None:
    """Let a new process heed Ctrl-C, also where the tests run in the background of a shell, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
