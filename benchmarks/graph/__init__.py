"""Cost of a node of the graph, compared with other packages: python -m benchmarks.graph."""
