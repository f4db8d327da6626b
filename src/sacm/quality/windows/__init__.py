"""Find and repair faults inside windows `[B, L, C]` before they reach a model; torch and NumPy."""
