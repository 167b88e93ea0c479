"""The entry point of the command `simphys`, which is interrupted in silence even while its modules are imported."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else Ctrl-C is to be ignored
        signal.signal(signal.SIGINT, _leave)
    from simphys.app.cli import main as run

    run()


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: nothing is at work yet, and an exception raised in a callback of an import would be lost."""
    print("Interrupted.", file=sys.stderr, flush=True)
    os._exit(130)
