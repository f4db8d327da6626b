from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sacm

pytest.importorskip("gluonts.torch", reason="needs gluonts, which asks for an older pandas")
from gluonts.dataset.common import ListDataset  # after the check
from gluonts.model.predictor import Predictor
from gluonts.torch.model.patch_tst import PatchTSTEstimator

from sacm.inject.window import WindowPath  # after the check
from sacm.integrations.gluonts import SACMCallback

from .series import load_series

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own
LENGTH = 24


def values() -> np.ndarray:
    return 2 + load_series(200)[:, 0]


def dataset(target: np.ndarray) -> Any:
    return ListDataset([{"start": pd.Period("2024-01-01", "D"), "target": target}], freq="D")


def answer(predictor: Any, target: np.ndarray) -> np.ndarray:
    import torch

    torch.manual_seed(0)
    (forecast,) = predictor.predict(dataset(target))
    return np.asarray(forecast.mean)


def test_estimator_trains_and_its_predictor_is_saved_and_protected(tmp_path: Path) -> None:
    callback = SACMCallback(coverage="all")
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    estimator = PatchTSTEstimator(
        prediction_length=4,
        context_length=LENGTH,
        patch_len=8,
        d_model=8,
        nhead=2,
        dim_feedforward=8,
        num_encoder_layers=1,
        dropout=0.2,
        num_batches_per_epoch=20,
        batch_size=8,
        trainer_kwargs={
            "max_epochs": 1,
            "accelerator": "cpu",
            "callbacks": [callback],
            "default_root_dir": str(tmp_path),
            **quiet,
        },
    )
    predictor = estimator.train(dataset(values()))
    modulator = callback.modulator
    assert modulator is not None
    assert abs(float(modulator.scorer.weight.detach()) - 1) > 1e-5

    predictor.serialize(tmp_path)
    np.testing.assert_array_equal(
        answer(Predictor.deserialize(tmp_path), values()), answer(predictor, values())
    )
    sacm.detach(predictor.prediction_net.model)
    np.testing.assert_array_equal(
        answer(Predictor.deserialize(tmp_path), values()), answer(predictor, values())
    )

    broken = values()
    broken[-3] = 90.0
    healthy, raw = answer(predictor, values()), answer(predictor, broken)
    position = list(predictor.input_names).index("past_target")
    guard = sacm.Guard(window=LENGTH).fit(values())
    sacm.protect(predictor.prediction_net, guard, input_arg=WindowPath((position,)))
    assert abs(answer(predictor, broken) - healthy).max() < 0.2 * abs(raw - healthy).max()
