"""Broken scenes and data files: each ends in an error that says what to do. `python -m benchmarks.fuzz --cases N`."""
