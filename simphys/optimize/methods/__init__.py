"""One method a file: each takes a Problem, reports its iterates to it and returns how it ended."""
