"""The layout probe: find out which entries of an activation belong to which window."""
