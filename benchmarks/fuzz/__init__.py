"""Broken scenes and files end in errors that say what to do; random steps agree. `python -m benchmarks.fuzz`."""
