"""Benchmarks of speed and memory: workloads in their exact discretization, costs of the engine, other programs."""
