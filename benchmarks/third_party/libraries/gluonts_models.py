"""Torch models of GluonTS, as their estimators make them."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from benchmarks.third_party.case import (
    BATCH,
    LENGTH,
    Case,
    Configuration,
    Configurations,
    make_windows,
)

HORIZON = 8
SMALL = {"d_model": 16, "nhead": 2, "dim_feedforward": 16, "num_encoder_layers": 1}
TST = {**SMALL, "dropout": 0.2, "activation": "relu", "norm_first": False, "scaling": "mean"}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "PatchTSTModel": (
        "patch_tst",
        {**TST, "patch_len": 8, "stride": 8, "padding_patch": "end", "num_feat_dynamic_real": 0},
    ),
    "LagTSTModel": ("lag_tst", {**TST, "freq": "D"}),
    "DLinearModel": ("d_linear", {"hidden_dimension": 8, "kernel_size": 5, "scaling": "mean"}),
    "SimpleFeedForwardModel": ("simple_feedforward", {"hidden_dimensions": [16]}),
    "ITransformerModel": ("i_transformer", TST),
    "TemporalFusionTransformerModel": (
        "tft",
        {"d_var": 8, "d_hidden": 8, "num_heads": 2, "dropout_rate": 0.2},
    ),
    "DeepARModel": (
        "deepar",
        {
            "freq": "D",
            "num_feat_dynamic_real": 1,
            "num_feat_static_real": 1,
            "num_feat_static_cat": 1,
            "cardinality": [1],
            "dropout_rate": 0.2,
        },
    ),
    "TiDEModel": (
        "tide",
        {
            "num_feat_dynamic_real": 1,
            "num_feat_dynamic_proj": 2,
            "num_feat_static_real": 1,
            "num_feat_static_cat": 1,
            "cardinality": [1],
            "embedding_dimension": [2],
            "feat_proj_hidden_dim": 8,
            "encoder_hidden_dim": 8,
            "decoder_hidden_dim": 8,
            "temporal_hidden_dim": 8,
            "distr_hidden_dim": 8,
            "num_layers_encoder": 1,
            "num_layers_decoder": 1,
            "decoder_output_dim": 4,
            "dropout_rate": 0.2,
            "layer_norm": True,
            "scaling": "mean",
        },
    ),
}


def build(name: str) -> Case:
    folder, options = MODELS[name]
    module = importlib.import_module(f"gluonts.torch.model.{folder}.module")
    model = getattr(module, name)(prediction_length=HORIZON, context_length=LENGTH, **options)
    shapes = model.describe_inputs(BATCH).shapes
    dtypes = model.describe_inputs(BATCH).dtypes
    inputs = {key: torch.zeros(shape, dtype=dtypes[key]) for key, shape in shapes.items()}
    length = shapes["past_target"][1]
    channels = shapes["past_target"][2] if len(shapes["past_target"]) > 2 else 1
    window = make_windows(channels, length)
    inputs["past_target"] = window if len(shapes["past_target"]) > 2 else window[..., 0]
    for key in inputs:
        if "observed" in key:
            inputs[key] = torch.ones_like(inputs[key])
    return Case(model, (), inputs, channels=channels, input_arg="past_target")


def configurations() -> Configurations:
    import gluonts.torch  # noqa: F401  # so that a missing library is known here

    for name in MODELS:
        for coverage in ("modules", "all"):
            yield Configuration("gluonts", name, lambda n=name: build(n), coverage)
