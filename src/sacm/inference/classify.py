"""Classification with a trained network: a class for every case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sacm.data.batches import LabelledWindows, WindowBatches
from sacm.data.cases import as_cases, pad, parse_case_file
from sacm.data.datasets import ClassificationData
from sacm.data.load import resolve
from sacm.data.scaling import fill_cases
from sacm.data.windows import SplitWindows
from sacm.errors import ArgumentError
from sacm.inference.predictor import Answer, Array, Predictor, check_finite
from sacm.tasks import Result, get_task
from sacm.tasks.base import EVALUATION_BATCH


def predict(predictor: Predictor, data: Any) -> Any:
    """The label of every case."""
    places = case_probabilities(predictor, _find_cases(predictor, data)).argmax(axis=1)
    return np.asarray(predictor.shape.classes)[places]


def tabulate(predictor: Predictor, data: Any) -> Answer:
    """The label of every case and the probability of each class, as a pandas frame."""
    import pandas as pd

    classes = predictor.shape.classes
    probabilities = case_probabilities(predictor, _find_cases(predictor, data))
    frame = pd.DataFrame(probabilities, columns=[f"p_{name}" for name in classes])
    frame.insert(0, "case", range(1, len(frame) + 1))
    frame.insert(1, "class", [classes[place] for place in probabilities.argmax(axis=1)])
    return Answer(frame)


def evaluate(predictor: Predictor, source: Any) -> Result:
    """Test the classes of a data set's test cases, or of all cases of another source."""
    data: Any = source
    if not isinstance(data, ClassificationData):
        data = resolve(source, task="classification", reading=predictor.settings.reading())
    if not len(data.X_test):
        data = replace(
            data, X_test=data.X_train, y_test=data.y_train, lengths_test=data.lengths_train
        )
    data = replace(data, classes=predictor.shape.classes)
    windows = case_windows(predictor, data.X_test, data.encode(data.y_test))
    split = SplitWindows(windows, windows, windows)
    return get_task("classification").evaluate(predictor.trained, split, data)


def _find_cases(predictor: Predictor, source: Any) -> Any:
    """Cases as they are, those of a data set's test part, or those of a whole file."""
    if isinstance(source, str | Path):
        if str(source) != predictor.settings.data:
            arrays = parse_case_file(Path(source), {})
            whole = str(source).endswith(".ts") or not len(arrays["X_test"])
            return arrays["X_train" if whole else "X_test"]
        source = resolve(source, task="classification")
    if isinstance(source, ClassificationData):
        return source.X_test if len(source.X_test) else source.X_train
    return source


def case_windows(predictor: Predictor, X: Any, codes: Array | None = None) -> LabelledWindows:
    """Cases, with the places of their classes if known, as the network takes them."""
    X = as_array(X)
    codes = np.zeros(len(X), dtype=np.int64) if codes is None else codes
    cases = as_cases(X, codes, "data", "new").values
    channels, length = predictor.shape.channels, predictor.shape.input_len
    predictor.check_channels(len(cases[0]), "a case")
    lengths = np.array([min(case.shape[1], length) for case in cases])
    padded = pad([case[:, :length] for case in cases], channels, length)  # [N, C, L]
    fill_cases(padded, lengths, "data")
    none = padded[:0], codes[:0]
    new = ClassificationData("data", padded, codes, *none, lengths, lengths[:0], classes=())
    repaired = predictor.strategy.prepare(new, window=length).data.X_train
    places = np.arange(len(cases))
    return LabelledWindows(repaired, lengths, codes, starts=places, scaler=predictor.scaler)


def case_logits(predictor: Predictor, X: Any, codes: Array | None = None) -> Tensor:
    """Finite logits `[N, K]` in float64 of cases as `case_windows` takes them."""
    batches = WindowBatches(case_windows(predictor, X, codes), EVALUATION_BATCH)
    logits = torch.cat([predictor.run(batch.x) for batch in batches]).double()
    check_finite(logits, "the class of case {} is undecided, for the answer is not finite")
    return logits


def case_probabilities(predictor: Predictor, X: Any) -> Array:
    """Probabilities `[N, K]` of cases as `case_windows` takes them."""
    return np.asarray(case_logits(predictor, X).softmax(dim=1).numpy())


def as_array(X: Any) -> Any:
    """A frame with one case a row as an array; arrays and lists as they are."""
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    if not hasattr(X, "__len__") or isinstance(X, str):
        raise ArgumentError(f"cases come as an array [N, C, L] or a list, not {type(X).__name__}.")
    return X
