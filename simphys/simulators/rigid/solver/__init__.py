"""Impulses of all rows, in the phases of a step."""
