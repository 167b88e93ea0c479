"""Proof of gradients: comparison of finite differences, tangents and adjoints, and mutation of the rules."""
