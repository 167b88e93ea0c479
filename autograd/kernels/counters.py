"""Counters of the work on a GPU, and of what travels between the host and it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields


@dataclass
class Counters:
    """Counts since the start of the process, on any GPU; all are 0 on the CPU, where nothing travels.

    The difference of two is the work between them: `before = runtime.counters.now()`, then
    `runtime.counters.now() - before`.
    """

    launches: int = 0
    """Launches of kernels, those that copy and fill arrays apart."""
    tasks: int = 0
    """Loops that these launches ran on the device; counted by quadrants, and for launches of arrays of the device."""
    uploads: int = 0
    """Arrays brought to the device."""
    downloads: int = 0
    """Arrays brought back, each of which waits for the device."""
    bytes_up: int = 0
    bytes_down: int = 0
    fills: int = 0
    """Arrays of the device that were filled with one number."""
    live_bytes: int = 0
    """Bytes of the arrays of the device that are in use."""
    pooled_bytes: int = 0
    """Bytes of those that are kept for the next ones."""
    peak_bytes: int = 0
    """Largest sum of both so far."""

    def now(self) -> Counters:
        """Return a copy, which counts no further."""
        return Counters(**asdict(self))

    def __sub__(self, before: Counters) -> Counters:
        return Counters(**{each.name: getattr(self, each.name) - getattr(before, each.name) for each in fields(self)})

    def upload(self, nbytes: int) -> None:
        self.uploads += 1
        self.bytes_up += nbytes

    def download(self, nbytes: int) -> None:
        self.downloads += 1
        self.bytes_down += nbytes

    def hold(self, *, live: int = 0, pooled: int = 0) -> None:
        """Add to the bytes that arrays of the device hold."""
        self.live_bytes += live
        self.pooled_bytes += pooled
        self.peak_bytes = max(self.peak_bytes, self.live_bytes + self.pooled_bytes)


counters = Counters()
