"""Pictures of fits: measurement, search, gradients, and unknown fields."""
