"""Contact geometry of rigid bodies. Start with candidates.py, the pairs of features, and pair.py, a single pair."""
