"""Trained networks at work: one `Predictor` for commands, estimators and services."""

from sacm.inference.predictor import Predictor

__all__ = ["Predictor"]
