"""Cases to classify, as the network saw those it learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from sacm.backbones.base import Backbone
from sacm.data.datasets import ClassificationData
from sacm.data.own.cases import as_cases
from sacm.data.own.ts_format import pad
from sacm.data.scaling import ChannelScaler
from sacm.data.tables.gaps import fill_cases
from sacm.data.windows.loader import WindowBatches
from sacm.data.windows.windows import LabelledWindows
from sacm.errors import ArgumentError, SACMError
from sacm.strategies.base import Strategy
from sacm.tasks.base import EVALUATION_BATCH, evaluating


def as_array(X: Any) -> Any:
    """A frame with one case a row as an array; arrays and lists as they are."""
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    if not hasattr(X, "__len__") or isinstance(X, str):
        raise ArgumentError(f"cases come as an array [N, C, L] or a list, not {type(X).__name__}.")
    return X


def case_windows(
    X: Any, codes: np.ndarray | None = None, *, scaler: ChannelScaler, length: int
) -> LabelledWindows:
    """Cases cut or padded to `length`, gaps filled, scaled; `codes` are their classes, if known."""
    X = as_array(X)
    codes = np.zeros(len(X), dtype=np.int64) if codes is None else codes
    cases = as_cases(X, codes, "data", "new").values
    if len(cases[0]) != scaler.channels:
        raise ArgumentError(
            f"the network was trained on {scaler.channels} channels but the cases have "
            f"{len(cases[0])}."
        )
    lengths = np.array([min(case.shape[1], length) for case in cases])
    padded = pad([case[:, :length] for case in cases], scaler.channels, length)  # [N, C, L]
    fill_cases(padded, lengths, "data")
    return LabelledWindows(padded, lengths, codes, cases=np.arange(len(cases)), scaler=scaler)


def without_cases(classes: Sequence[Any], *, channels: int, length: int) -> ClassificationData:
    """A container that says what a network is to be built for, and no more."""
    nothing = np.empty((0, channels, length), dtype=np.float32)
    none = np.empty(0, dtype=np.int64)
    return ClassificationData(
        name="data",
        X_train=nothing,
        y_train=none,
        X_test=nothing,
        y_test=none,
        lengths_train=none,
        lengths_test=none,
        classes=tuple(classes),
    )


def class_logits(model: Backbone, windows: LabelledWindows, strategy: Strategy) -> torch.Tensor:
    """Logits `[N, K]` in float64, all of them finite."""
    parts = []
    with evaluating(model) as device:
        for batch in WindowBatches(windows, EVALUATION_BATCH):
            parts.append(model(strategy.inputs(batch.x.to(device))).cpu().double())
    logits = torch.cat(parts)
    failed = (~logits.isfinite()).any(dim=1).nonzero()
    if len(failed):
        raise SACMError(
            f"the class of case {int(failed[0]) + 1} is undecided, for the network's answer is not "
            "finite: look for extreme values in it."
        )
    return logits


def class_probabilities(
    model: Backbone, windows: LabelledWindows, strategy: Strategy
) -> np.ndarray:
    """Probabilities `[N, K]`."""
    probabilities: np.ndarray = class_logits(model, windows, strategy).softmax(dim=1).numpy()
    return probabilities
