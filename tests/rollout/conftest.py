"""Tests of this folder import the package `benchmarks`."""

from __future__ import annotations

from ..helpers import checkout

__all__ = ["checkout"]
