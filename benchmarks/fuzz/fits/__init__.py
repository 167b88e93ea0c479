"""Random fits: small scenes of most simulators, a recording made by themselves, and any features of a fit together."""
