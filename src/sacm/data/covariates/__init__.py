"""Covariates: columns beside the channels, and what the calendar knows about each row."""
