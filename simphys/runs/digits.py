"""Numbers with as many digits as they are known to."""

from __future__ import annotations

import math

ROUNDING = 1e-14
"""Part of a number's scale below which it is the rounding of 0: some 50 roundings in double precision."""


def format_estimate(value: float, error: float) -> tuple[str, str]:
    """Format a value and its standard error: the error with two digits, the value to the same decimal place.

    Without an error (NaN) the value has six digits. 12.34567 and 0.0123 give '12.346' and '0.012'.
    """
    if not math.isfinite(error) or error <= 0 or not math.isfinite(value):
        return f"{value:.6g}", ""
    decimals = 1 - math.floor(math.log10(error))
    size = max(abs(value), error)
    if decimals < 0 or size >= 1e6 or error < 1e-8:  # as a power of ten, with the digits that the error leaves
        digits = max(1, decimals + math.floor(math.log10(size)))
        return f"{value:.{digits}e}", f"{error:.1e}"
    return f"{value:.{decimals}f}", f"{error:.{decimals}f}"


def format_start(start: float, scale: float) -> str:
    """Format the value at which a search began: six digits, or 0 where it is the rounding of 0 beside its scale.

    A start that turned by a quarter circle is 1.5e-17 m instead of 0, beside results of 0.1 m.
    """
    return "0" if abs(start) < ROUNDING * scale else f"{start:.6g}"
