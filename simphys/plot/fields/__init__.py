"""Pictures of fields on grids."""
