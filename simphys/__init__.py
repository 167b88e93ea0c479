"""Differentiable physics with hand-written, proven adjoints."""

from __future__ import annotations

__version__ = "0.1.0"
