"""Run `python -m benchmarks.workloads`."""

from .run import main

main()
