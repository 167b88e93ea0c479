"""Arrays along time as short text: rounded to 8 or 16 bits, as differences along time, deflated, in base64."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

Packed = Mapping[str, Any]
"""Packed array: its text, shape and bits, and the values `low` and `high` of the smallest and largest integer."""


def pack(values: np.ndarray, low: np.ndarray | float, high: np.ndarray | float, *, bits: int = 16) -> Packed:
    """Pack values [T, ...] between `low` and `high`, both a number or [last axis]; values outside are clipped.

    The error is half of (high - low) / (2^bits - 1). page/replay.js holds the inverse.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    span = np.where(high > low, high - low, 1.0)
    whole = np.rint(np.clip((values - low) / span, 0, 1) * (2**bits - 1)).astype(np.uint16 if bits == 16 else np.uint8)
    change = np.diff(whole, axis=0, prepend=np.zeros_like(whole[:1]))  # modulo 2^bits
    if bits == 16:
        text = encode(np.concatenate([(change & 0xFF).ravel(), (change >> 8).ravel()]).astype(np.uint8))
    else:
        text = encode(change)
    return {
        "data": text,
        "bits": bits,
        "shape": list(values.shape),
        "low": low.tolist(),
        "high": (low + span).tolist(),
    }


def encode(values: np.ndarray) -> str:
    """Deflate the bytes of an array, and write them in base64."""
    return base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 9)).decode()


def decode_bytes(text: str) -> np.ndarray:
    """Read back the bytes of `encode`."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)


def unpack(packed: Packed) -> np.ndarray:
    """Read back the values of `pack`, up to their rounding."""
    raw, shape, bits = decode_bytes(packed["data"]), tuple(packed["shape"]), packed["bits"]
    count = int(np.prod(shape))
    change = raw[:count].astype(np.uint16)
    if bits == 16:
        change |= raw[count:].astype(np.uint16) << 8
    whole = np.cumsum(change.reshape(shape), axis=0, dtype=np.uint64) & (2**bits - 1)
    low, high = np.asarray(packed["low"], float), np.asarray(packed["high"], float)
    return low + whole / (2**bits - 1) * (high - low)


def pack_indices(values: np.ndarray) -> Packed:
    """Pack indices [rows, columns] without loss, as two integers of 16 bits each."""
    return pack(values.astype(float), 0.0, 65535.0)
