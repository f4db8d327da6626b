"""All models of neuralforecast, small."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from benchmarks.third_party.case import (
    LENGTH,
    Case,
    Configuration,
    Configurations,
    make_windows,
)
from sacm.integrations.neuralforecast import locate_window

SERIES, HORIZON = 3, 8
SMALL = {
    "hidden_size": 8,
    "n_head": 2,
    "n_heads": 2,
    "conv_hidden_size": 8,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "e_layers": 1,
    "d_layers": 1,
    "d_ff": 16,
    "linear_hidden_size": 16,
    "encoder_hidden_size": 8,
    "encoder_n_layers": 2,
    "decoder_hidden_size": 8,
    "lstm_hidden_size": 8,
    "mlp_units": [[16, 16]] * 3,
    "num_layers": 1,
    "n_layers": 1,
    "patch_len": 8,
    "stride": 4,
    "d_model": 8,
    "max_steps": 1,
    "n_polynomials": 2,
    "temporal_decoder_dim": 8,
    "decoder_output_dim": 4,
}
OWN: dict[str, dict[str, Any]] = {
    "FEDformer": {"n_head": 8, "hidden_size": 16, "modes": 4},
    "NBEATS": {"dropout_prob_theta": 0.0},  # others are refused by the library
}
UNFIT = {"HINT", "TimeLLM", "xLSTM"}  # a wrapper; weights from a hub; compiled kernels


def build(cls: Any) -> Case:
    known = inspect.signature(cls.__init__).parameters
    options = {name: value for name, value in SMALL.items() if name in known}
    options |= {
        name: 0.2 for name in known if "dropout" in name or name in ("drop", "dropout_rate")
    }
    options |= OWN.get(cls.__name__, {})
    if "n_series" in known:
        options["n_series"] = SERIES
    model = cls(h=HORIZON, input_size=LENGTH, **options)
    found = locate_window(model)
    window = make_windows(found.channels)
    batch = {
        "insample_y": window,
        "insample_mask": torch.ones_like(window),
        "futr_exog": None,
        "hist_exog": None,
        "stat_exog": None,
    }
    return Case(model, (batch,), channels=found.channels, input_arg=found.input_arg)


def configurations() -> Configurations:
    import neuralforecast.models as models

    for name in sorted(set(models.__all__) - UNFIT):
        cls = getattr(models, name)
        for coverage in ("modules", "all"):
            yield Configuration("neuralforecast", name, lambda cls=cls: build(cls), coverage)
