"""Recorded runs: the motion, the measurement and the fit, as they are written and drawn."""
