"""Motion of bodies by forces and velocities, and what a controller gets of it."""
