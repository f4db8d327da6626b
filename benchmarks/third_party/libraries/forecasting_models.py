"""Models of pytorch-forecasting, made from a small data set."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from benchmarks.third_party.case import (
    BATCH,
    LENGTH,
    Case,
    Configuration,
    Configurations,
    make_windows,
)
from sacm.integrations.pytorch_forecasting import locate_window

HORIZON = 8
MODELS: dict[str, dict[str, Any]] = {
    "TemporalFusionTransformer": {"hidden_size": 8, "attention_head_size": 2, "dropout": 0.2},
    "NBeats": {"widths": [16, 16], "num_blocks": [1, 1], "dropout": 0.2},
    "NHiTS": {"hidden_size": 16, "dropout": 0.2},
    "DecoderMLP": {"hidden_size": 16, "dropout": 0.2},
    "RecurrentNetwork": {"hidden_size": 8, "rnn_layers": 2, "dropout": 0.2},
    "DeepAR": {"hidden_size": 8, "rnn_layers": 2, "dropout": 0.2},
    "TiDEModel": {"hidden_size": 8, "dropout": 0.2},
    "xLSTMTime": {"hidden_size": 8, "dropout": 0.2},
    "TimeXer": {"hidden_size": 16, "n_heads": 2, "e_layers": 1, "d_ff": 16, "dropout": 0.2},
}


@functools.cache
def dataset(name: str) -> Any:
    import pandas as pd
    from pytorch_forecasting import TimeSeriesDataSet

    values = np.random.default_rng(0).normal(size=200)
    frame = pd.DataFrame({"time": np.arange(200), "group": "a", "value": values})
    only_target = name in ("NBeats", "RecurrentNetwork", "DeepAR")
    return TimeSeriesDataSet(
        frame,
        time_idx="time",
        target="value",
        group_ids=["group"],
        min_encoder_length=LENGTH,
        max_encoder_length=LENGTH,
        min_prediction_length=HORIZON,
        max_prediction_length=HORIZON,
        time_varying_unknown_reals=["value"],
        time_varying_known_reals=[] if only_target else ["time"],
    )


def build(name: str) -> Case:
    import pytorch_forecasting
    import pytorch_forecasting.models as models

    data = dataset(name)
    cls = getattr(pytorch_forecasting, name, None) or getattr(models, name)
    model = cls.from_dataset(data, log_interval=-1, **MODELS[name])
    batch, _ = next(iter(data.to_dataloader(train=False, batch_size=BATCH)))
    found = locate_window(model)
    window = make_windows(found.channels)
    batch["encoder_cont"] = batch["encoder_cont"].clone()
    columns = torch.tensor(found.input_arg.columns)
    batch["encoder_cont"].index_copy_(-1, columns, window)
    return Case(model, (dict(batch),), channels=found.channels, input_arg=found.input_arg)


def configurations() -> Configurations:
    import pytorch_forecasting  # noqa: F401  # so that a missing library is known here

    for name in MODELS:
        for coverage in ("modules", "all"):
            yield Configuration("pytorch-forecasting", name, lambda n=name: build(n), coverage)
