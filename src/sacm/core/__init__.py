"""The method itself, one stage a file, on torch and NumPy alone."""
