"""Run `python -m benchmarks.rollout`."""

from .run import main

main()
