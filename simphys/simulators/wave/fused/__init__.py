"""The fused steps of waves: loops over the lines of a grid in their own layout, and the engine that launches them."""
