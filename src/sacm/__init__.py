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

if TYPE_CHECKING:
    from sacm import backbones as backbones
    from sacm import data as data
    from sacm import metrics as metrics
    from sacm import strategies as strategies
    from sacm import testing as testing
    from sacm import theory as theory
    from sacm.core.config import SACMConfig as SACMConfig
    from sacm.core.dropout import adaptive_dropout as adaptive_dropout
    from sacm.core.mapper import RateMapper as RateMapper
    from sacm.core.scorer import ScorerOutput as ScorerOutput
    from sacm.core.scorer import SpectralScorer as SpectralScorer
    from sacm.core.scorer import score_windows as score_windows
    from sacm.estimators import AnomalyDetector as AnomalyDetector
    from sacm.estimators import Classifier as Classifier
    from sacm.estimators import Forecaster as Forecaster
    from sacm.inference import Predictor as Predictor
    from sacm.inject.attach import attach as attach
    from sacm.inject.attach import detach as detach
    from sacm.inject.attach import strip_state_dict as strip_state_dict
    from sacm.inject.modulator import CapacityModulator as CapacityModulator
    from sacm.inject.sites import Site as Site
    from sacm.inject.sites import SiteLayout as SiteLayout
    from sacm.quality.guard import Guard as Guard
    from sacm.quality.inspect import inspect as inspect
    from sacm.quality.protect import protect as protect
    from sacm.quality.protect import unprotect as unprotect

__version__ = "0.2.0"

# Where each public name is; type checkers see the imports above.
_PUBLIC = {
    "AnomalyDetector": "sacm.estimators",
    "Classifier": "sacm.estimators",
    "Forecaster": "sacm.estimators",
    "Guard": "sacm.quality.guard",
    "Predictor": "sacm.inference",
    "SACMConfig": "sacm.core.config",
    "attach": "sacm.inject.attach",
    "detach": "sacm.inject.attach",
    "inspect": "sacm.quality.inspect",
    "protect": "sacm.quality.protect",
    "unprotect": "sacm.quality.protect",
}
_MODULES = ("backbones", "data", "metrics", "strategies", "testing", "theory")
# Importable from here too, but not listed by `dir(sacm)`.
_PARTS = {
    "CapacityModulator": "sacm.inject.modulator",
    "RateMapper": "sacm.core.mapper",
    "ScorerOutput": "sacm.core.scorer",
    "Site": "sacm.inject.sites",
    "SiteLayout": "sacm.inject.sites",
    "SpectralScorer": "sacm.core.scorer",
    "adaptive_dropout": "sacm.core.dropout",
    "score_windows": "sacm.core.scorer",
    "strip_state_dict": "sacm.inject.attach",
}
_LAZY = {**_PUBLIC, **_PARTS, **{name: f"sacm.{name}" for name in _MODULES}}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'sacm' has no attribute {name!r}")
    module = importlib.import_module(_LAZY[name])
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*_PUBLIC, *_MODULES, "__version__"]
