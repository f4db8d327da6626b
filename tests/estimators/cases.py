"""Every estimator as a test case: a tiny one, data for it, and what it says about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sacm import AnomalyDetector, Classifier, Forecaster

ROWS, CHANNELS = 200, 2


def waves(rows: int = ROWS, channels: int = CHANNELS, *, noise: float = 0.2) -> np.ndarray:
    """Sines of different periods with noise, `[T, C]`."""
    generator = np.random.default_rng(0)
    time = np.arange(rows)[:, None]
    periods = 12 + 5 * np.arange(channels)
    return np.sin(2 * np.pi * time / periods) + noise * generator.normal(size=(rows, channels))


def labelled(cases: int = 24, channels: int = CHANNELS) -> tuple[np.ndarray, np.ndarray]:
    """Slow and fast waves, `[N, C, L]`, and which is which."""
    generator = np.random.default_rng(0)
    y = np.array(["slow", "fast"])[np.arange(cases) % 2]
    period = np.where(y == "slow", 16.0, 5.0)[:, None, None]
    phase = generator.uniform(0, 6, (cases, channels, 1))
    X = np.sin(2 * np.pi * np.arange(24) / period + phase)
    return X + 0.1 * generator.normal(size=X.shape), y


@dataclass(frozen=True)
class Case:
    make: Callable[..., Any]
    arguments: Callable[..., tuple[Any, ...]]  # of fit, for a number of channels
    answer: Callable[[Any, tuple[Any, ...]], np.ndarray]
    questions: tuple[str, ...]  # methods that need a fitted estimator

    def __str__(self) -> str:
        return str(self.make().__class__.__name__)

    def fitted(self, **parameters: Any) -> Any:
        return self.make(**parameters).fit(*self.arguments())


def tiny(kind: type[Any], **own: Any) -> Callable[..., Any]:
    def make(**parameters: Any) -> Any:
        return kind("iTransformer", size="small", epochs=1, **{**own, **parameters})

    return make


CASES = [
    Case(
        tiny(Forecaster, input_len=12, horizon=4),
        lambda channels=CHANNELS: (waves(channels=channels),),
        lambda estimator, arguments: estimator.predict(arguments[0]),
        ("predict", "predict_interval", "evaluate"),
    ),
    Case(
        tiny(Classifier),
        lambda channels=CHANNELS: labelled(channels=channels),
        lambda estimator, arguments: estimator.predict_proba(arguments[0]),
        ("predict", "predict_proba"),
    ),
    Case(
        tiny(AnomalyDetector, input_len=12),
        lambda channels=CHANNELS: (waves(channels=channels),),
        lambda estimator, arguments: estimator.anomaly_scores(arguments[0]),
        ("predict", "anomaly_scores", "decision_function"),
    ),
]
every_estimator = pytest.mark.parametrize("case", CASES, ids=str)
