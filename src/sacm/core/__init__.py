"""The method itself, one stage per file, on torch and NumPy alone."""
