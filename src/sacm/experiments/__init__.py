"""Grids of runs, how they are run, and what may be concluded from them."""
