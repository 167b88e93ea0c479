"""Pictures of fits: measurement, search, gradients, and fields that were unknown."""
