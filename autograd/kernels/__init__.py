"""Kernels: the compiler and its settings, memory with versions, checked arguments, launches."""
