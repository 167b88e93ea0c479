"""Cost of memory budgets, batches, determinism and checks of a rollout: python -m benchmarks.rollout."""
