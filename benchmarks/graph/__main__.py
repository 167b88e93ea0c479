"""Run `python -m benchmarks.graph`."""

from .run import main

main()
