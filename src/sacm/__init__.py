"""Deep time-series models that stay robust when the data are not.

The core (`attach`, scoring, `protect`) needs torch and NumPy; backbones, data and estimators need
the `train` extra. Everything loads on first use, so that `sacm --help` need not wait for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sacm.errors import ArgumentError as ArgumentError
from sacm.errors import DataError as DataError
from sacm.errors import LayoutError as LayoutError
from sacm.errors import SACMError as SACMError
from sacm.errors import SACMWarning as SACMWarning

if TYPE_CHECKING:  # what `__getattr__` does, for type checkers
    from sacm import backbones as backbones
    from sacm import data as data
    from sacm import metrics as metrics
    from sacm import quality as quality
    from sacm import strategies as strategies
    from sacm import testing as testing
    from sacm import theory as theory
    from sacm.core.config import SACMConfig
    from sacm.core.dropout import adaptive_dropout as adaptive_dropout
    from sacm.core.mapper import RateMapper as RateMapper
    from sacm.core.scorer import SpectralScorer as SpectralScorer
    from sacm.core.scorer import score_windows as score_windows
    from sacm.estimators import AnomalyDetector, Classifier, Forecaster
    from sacm.inference import Predictor
    from sacm.inject.attach import attach, detach
    from sacm.inject.attach import strip_state_dict as strip_state_dict
    from sacm.inject.modulator import CapacityModulator as CapacityModulator
    from sacm.inject.sites import SiteLayout as SiteLayout
    from sacm.quality.guard import Guard
    from sacm.quality.inspect import inspect
    from sacm.quality.protect import protect, unprotect

__version__ = "0.2.0"

__all__ = ["AnomalyDetector", "Classifier", "Forecaster", "Guard", "Predictor", "SACMConfig"]
__all__ += ["attach", "detach", "inspect", "protect", "unprotect"]
_MODULES = ("backbones", "data", "metrics", "quality", "strategies", "testing", "theory")
_MEMBERS = {
    "core.config": ("SACMConfig",),
    "core.dropout": ("adaptive_dropout",),
    "core.mapper": ("RateMapper",),
    "core.scorer": ("SpectralScorer", "score_windows"),
    "estimators": ("AnomalyDetector", "Classifier", "Forecaster"),
    "inference": ("Predictor",),
    "inject.attach": ("attach", "detach", "strip_state_dict"),
    "inject.modulator": ("CapacityModulator",),
    "inject.sites": ("SiteLayout",),
    "quality.guard": ("Guard",),
    "quality.inspect": ("inspect",),
    "quality.protect": ("protect", "unprotect"),
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    module = next((module for module, names in _MEMBERS.items() if name in names), None)
    if module is None and name not in _MODULES:
        raise AttributeError(f"module 'sacm' has no attribute {name!r}")
    loaded = importlib.import_module(f"sacm.{module or name}")
    globals()[name] = value = getattr(loaded, name) if module else loaded
    return value


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
