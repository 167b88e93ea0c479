"""Pictures of motion: bodies, particles and springs along time."""
