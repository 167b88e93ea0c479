"""Kernels: the compiler and its settings, checked arguments, launches."""
