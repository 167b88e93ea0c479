"""Proof of gradients: finite differences, tangents and adjoints compared, and mutation of the rules themselves."""
