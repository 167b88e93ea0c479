"""Shallow water: start reading at step.py, the nested step; engine.py is the fast way through it."""
