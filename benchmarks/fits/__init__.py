"""Whole fits: time, memory, and how far they arrive."""
