"""An experiment: a scene with its unknowns, its measurement, and the loss between them."""
