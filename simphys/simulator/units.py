"""Units of length and time in which a scene computes."""

from __future__ import annotations

import re
from typing import NamedTuple


class Units(NamedTuple):
    """Units of length and time, SI by default. Those of speed and the like follow."""

    length: str = "m"
    time: str = "s"

    @property
    def speed(self) -> str:
        """Unit of speed."""
        return f"{self.length}/{self.time}"

    @property
    def frequency(self) -> str:
        """Unit of frequency."""
        return "Hz" if self.time == SI.time else f"1/{self.time}"

    def convert(self, unit: str) -> str:
        """Return the unit in place of one of SI: 'nm/ps' for 'm/s'; '' where mass or the like is a part of it."""
        if self == SI:
            return unit
        parts = re.findall(r"[^\W\d_]+", unit)
        own = {"m": self.length, "s": self.time, "rad": "rad"}
        return re.sub(r"[^\W\d_]+", lambda part: own[part[0]], unit) if all([part in own for part in parts]) else ""


SI = Units()
