"""The experiments of the paper: what they are, what their runs say, how that is tabulated."""
