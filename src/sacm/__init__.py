"""Sample-adaptive capacity modulation for deep time-series models.

The core (`attach`, scoring) needs torch and NumPy; backbones, data and estimators load on first
use and need the `train` extra.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sacm import theory
from sacm.core.config import SACMConfig
from sacm.core.mapper import RateMapper
from sacm.core.masking import adaptive_dropout
from sacm.core.scorer import ScorerOutput, SpectralScorer
from sacm.core.windows import score_windows
from sacm.errors import ArgumentError, DataError, LayoutError, SACMError, SACMWarning
from sacm.inject.attach import attach, detach, strip_state_dict
from sacm.inject.layout import SiteLayout
from sacm.inject.modulator import CapacityModulator
from sacm.inject.sites import Site

if TYPE_CHECKING:
    from sacm import backbones, data
    from sacm.estimators import AnomalyDetector, Classifier, Forecaster

__version__ = "0.1.0"

_LAZY = {
    "backbones": "sacm.backbones",
    "data": "sacm.data",
    "Forecaster": "sacm.estimators",
    "Classifier": "sacm.estimators",
    "AnomalyDetector": "sacm.estimators",
}

__all__ = [
    "AnomalyDetector",
    "ArgumentError",
    "CapacityModulator",
    "Classifier",
    "DataError",
    "Forecaster",
    "LayoutError",
    "RateMapper",
    "SACMConfig",
    "SACMError",
    "SACMWarning",
    "ScorerOutput",
    "Site",
    "SiteLayout",
    "SpectralScorer",
    "adaptive_dropout",
    "attach",
    "backbones",
    "data",
    "detach",
    "score_windows",
    "strip_state_dict",
    "theory",
]


def __getattr__(name: str) -> Any:
    """Load the parts that need the `train` extra when they are first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'sacm' has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    return module if _LAZY[name] == f"sacm.{name}" else getattr(module, name)
