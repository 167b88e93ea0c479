"""Diagnosis of gradients: proof that one is right, and measures of how far it is of use."""
