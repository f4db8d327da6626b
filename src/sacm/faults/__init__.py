"""Faults to train against and to test with: one registry for series, windows, rows and labels."""
