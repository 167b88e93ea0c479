"""Composition of functions: pipes, combined and checkpointed nodes, Jacobians and second derivatives."""
