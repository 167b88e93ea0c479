"""The six workloads of speed, in their exact discretization: python -m benchmarks.workloads NAME."""
