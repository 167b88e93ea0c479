"""Optimization methods, one per file. Each takes a StageProblem, reports its iterates to it and returns an Outcome."""
