"""Joints, motors and spring-dampers: their rows and forces."""
