"""Random fits: small scenes of every simulator, a recording made by themselves, and any features of a fit together."""
