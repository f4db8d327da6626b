"""Named experiments: what they are, what their runs say, how that is tabulated."""
