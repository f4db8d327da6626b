"""Constructors of estimators, made from the settings of a run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from sacm.settings import READING, RunSettings

# Protocols of experiments break data on purpose; a user's own data are learnt from as they are.
_OF_EXPERIMENTS = ("contamination", "watch")
# Other libraries' estimators have seed 0 (the command line has the paper's 42); scikit-learn wants
# defaults that cannot be changed in place.
_DEFAULTS: dict[str, Any] = {"seed": 0, "overrides": None}


def parameters_from_settings(*, without: tuple[str, ...]) -> Callable[[Callable[..., None]], Any]:
    """Decorate an estimator's `__init__`: settings it does not name itself become parameters too.

    The constructor then only stores its parameters, as scikit-learn asks; a setting that is added
    to `RunSettings` needs no change here.

    Args:
        without: Settings that the task has no use for or that the data decide.

    Returns:
        A decorator for a constructor that ends in `**settings`.
    """

    def decorate(constructor: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(constructor).parameters
        named = [p for p in own.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        settings = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_DEFAULTS.get(name, field.default),
                annotation=field.annotation,
            )
            for name, field in RunSettings.model_fields.items()
            if name not in own
            and name not in ("task", "data", *READING, *_OF_EXPERIMENTS, *without)
        ]
        signature = inspect.Signature([*named, *settings])

        @functools.wraps(constructor)
        def store(self: Any, *args: Any, **values: Any) -> None:
            bound = signature.bind(self, *args, **values)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)

        store.__signature__ = signature  # type: ignore[attr-defined]  # read by scikit-learn
        return store

    return decorate


def settings_of(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator that are settings of a run; it reads its data by itself."""
    return {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name in RunSettings.model_fields and name not in READING
    }
