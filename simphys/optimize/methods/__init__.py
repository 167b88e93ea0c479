"""Optimization methods, one per file. Each takes a Problem, reports its iterates to it and returns an Outcome."""
