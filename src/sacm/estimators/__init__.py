"""Networks with scikit-learn's interface: fit, predict, save.

forecast = sacm.Forecaster(horizon=24).fit(frame).predict()
labels = sacm.Classifier().fit(X, y).predict(X_new)
alarms = sacm.AnomalyDetector().fit(X_train).alarms(X_test)
"""

from __future__ import annotations

from sacm.estimators.anomaly_detector import AnomalyDetector
from sacm.estimators.base import NotFittedError
from sacm.estimators.classifier import Classifier
from sacm.estimators.forecaster import Forecaster, Interval

__all__ = ["AnomalyDetector", "Classifier", "Forecaster", "Interval", "NotFittedError"]
