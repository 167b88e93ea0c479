"""Run folders: the motion, the measurement and the fit of one run on disk."""
