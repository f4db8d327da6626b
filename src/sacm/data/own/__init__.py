"""A user's own data as the three data sets."""
