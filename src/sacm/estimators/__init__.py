"""Networks with scikit-learn's interface: fit, predict, save."""

from sacm.estimators.anomaly_detector import AnomalyDetector
from sacm.estimators.base import NotFittedError
from sacm.estimators.classifier import Classifier
from sacm.estimators.forecaster import Forecaster

__all__ = ["AnomalyDetector", "Classifier", "Forecaster", "NotFittedError"]
