"""Classification with a trained network: cases as the network saw those it learnt from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sacm.data.batches import LabelledWindows
from sacm.data.datasets import ClassificationData
from sacm.data.gaps import fill_cases
from sacm.data.load import names_file, resolve
from sacm.data.loader import WindowBatches
from sacm.data.own.cases import as_cases, parse_case_file
from sacm.data.own.ts_format import pad
from sacm.errors import ArgumentError
from sacm.inference.answer import TableAnswer
from sacm.inference.trained import UNDECIDED, Array, TrainedNetwork, check_finite, is_array
from sacm.tasks.base import EVALUATION_BATCH


def predict_labels(trained: TrainedNetwork, data: Any) -> Any:
    """The label of every case; of a single window `[L, C]` one label."""
    classes = np.asarray(trained.shape.classes)
    if is_array(data):
        single = data.ndim == 2
        found = trained.probabilities(data[None] if single else data)
        labels = classes[np.asarray(found.argmax(-1).tolist())]
        return labels[0] if single else labels
    return classes[source_probabilities(trained, data).argmax(axis=1)]


def tabulate_labels(trained: TrainedNetwork, data: Any) -> TableAnswer:
    """The label of every case and the probability of each class, as a pandas frame."""
    import pandas as pd

    classes = trained.shape.classes
    probabilities = source_probabilities(trained, data)
    frame = pd.DataFrame(probabilities, columns=[f"p_{name}" for name in classes])
    frame.insert(0, "case", range(1, len(frame) + 1))
    frame.insert(1, "class", [classes[place] for place in probabilities.argmax(axis=1)])
    return TableAnswer(frame)


def source_probabilities(trained: TrainedNetwork, data: Any) -> Array:
    """Probabilities `[N, K]` of the cases of a file, a data set, a frame or a list."""
    cases = find_cases(data, trained.settings.data)
    return case_probabilities(trained, case_windows(trained, cases))


def find_cases(source: Any, trained_on: str) -> Any:
    """The cases that a source stands for: the test cases of a data set, all cases of a file."""
    if isinstance(source, ClassificationData):
        return source.X_test if len(source.X_test) else source.X_train
    if not isinstance(source, str | Path):
        return source
    if str(source) == trained_on or not names_file(source):
        return find_cases(resolve(source, task="classification"), trained_on)
    arrays = parse_case_file(Path(source), None)
    whole = str(source).endswith(".ts") or not len(arrays["X_test"])
    return arrays["X_train" if whole else "X_test"]


def case_windows(trained: TrainedNetwork, X: Any, codes: Array | None = None) -> LabelledWindows:
    """Cases cut or padded to the length of the network, gaps filled, scaled.

    Args:
        trained: The network.
        X: An array `[N, C, L]` or `[N, L]`, a list of arrays `[C, L_i]`, or a frame with one case
            of one channel a row.
        codes: Positions `[N]` of their classes, if these are known.

    Returns:
        Windows `[B, L, C]`.

    Raises:
        ArgumentError: `X` is none of these, or has another number of channels.
    """
    X = as_array(X)
    codes = np.zeros(len(X), dtype=np.int64) if codes is None else codes
    cases = as_cases(X, codes, "data", "new").values
    channels, length = trained.shape.channels, trained.shape.input_len
    trained.check_channels(len(cases[0]), "a case")
    lengths = np.array([min(case.shape[1], length) for case in cases])
    padded = pad([case[:, :length] for case in cases], channels, length)  # [N, C, L]
    fill_cases(padded, lengths, "data")
    nothing = padded[:0], codes[:0]
    new = ClassificationData("data", padded, codes, *nothing, lengths, lengths[:0], classes=())
    padded = trained.strategy.apply(new).X_train
    return LabelledWindows(
        padded, lengths, codes, cases=np.arange(len(cases)), scaler=trained.scaler
    )


def case_logits(trained: TrainedNetwork, windows: LabelledWindows) -> Tensor:
    """Finite logits `[N, K]` in float64."""
    parts = [
        trained.answer(trained.network, batch.x)
        for batch in WindowBatches(windows, EVALUATION_BATCH)
    ]
    logits = torch.cat(parts).double()
    check_finite(logits, UNDECIDED)
    return logits


def case_probabilities(trained: TrainedNetwork, windows: LabelledWindows) -> Array:
    """Probabilities `[N, K]`."""
    probabilities: Array = case_logits(trained, windows).softmax(dim=1).numpy()
    return probabilities


def as_array(X: Any) -> Any:
    """A frame with one case a row as an array; arrays and lists as they are."""
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    if not hasattr(X, "__len__") or isinstance(X, str):
        raise ArgumentError(f"cases come as an array [N, C, L] or a list, not {type(X).__name__}.")
    return X
