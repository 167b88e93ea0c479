"""Run `python -m benchmarks.truth`."""

from .run import main

main()
