"""Pendulums: chains of links in the plane, and the spherical pendulum."""
