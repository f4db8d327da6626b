"""Faults of sensors to train against and to test with, for windows and for whole series."""
