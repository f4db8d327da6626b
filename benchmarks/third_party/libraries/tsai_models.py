"""Networks of tsai for series `[B, C, L]`, each from its own file."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.third_party.case import (
    CHANNELS,
    LENGTH,
    Case,
    Configuration,
    Configurations,
    make_windows,
)

SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {  # class, file and options
    "ConvTranPlus": ("ConvTranPlus", {"dropout": 0.2, "d_model": 16, "n_heads": 2, "dim_ff": 16}),
    "FCN": ("FCN", {}),
    "FCNPlus": ("FCNPlus", {"fc_dropout": 0.2}),
    "InceptionTime": ("InceptionTime", {"nf": 4}),
    "InceptionTimePlus": ("InceptionTimePlus", {"nf": 4, "fc_dropout": 0.2}),
    "MLP": ("MLP", {"layers": [16, 16], "ps": [0.2, 0.2]}),
    "gMLP": ("gMLP", {"patch_size": 1, "d_model": 16, "d_ffn": 16, "depth": 2}),
    "OmniScaleCNN": ("OmniScaleCNN", {}),
    "PatchTST": ("PatchTST", {"pred_dim": 8, "patch_len": 8, "stride": 8, "dropout": 0.2, **SMALL}),
    "RNN": ("RNN", {"hidden_size": 8, "fc_dropout": 0.2, "rnn_dropout": 0.2}),
    "LSTM": ("RNN", {"hidden_size": 8, "n_layers": 2, "rnn_dropout": 0.2}),
    "GRU": ("RNN", {"hidden_size": 8, "fc_dropout": 0.2}),
    "LSTMAttention": ("RNNAttention", {"hidden_size": 8, "fc_dropout": 0.2}),
    "LSTMPlus": ("RNNPlus", {"hidden_size": 8, "fc_dropout": 0.2}),
    "LSTM_FCN": ("RNN_FCN", {"hidden_size": 8, "fc_dropout": 0.2}),
    "GRU_FCN": ("RNN_FCN", {"hidden_size": 8, "fc_dropout": 0.2}),
    "ResCNN": ("ResCNN", {}),
    "ResNet": ("ResNet", {}),
    "ResNetPlus": ("ResNetPlus", {"nf": 8, "fc_dropout": 0.2}),
    "TCN": ("TCN", {"layers": [8, 8], "conv_dropout": 0.2, "fc_dropout": 0.2}),
    "TSPerceiver": ("TSPerceiver", {"n_latents": 8, "d_latent": 8, "attn_dropout": 0.2}),
    "TSSequencerPlus": ("TSSequencerPlus", {"d_model": 16, "depth": 1, "dropout": 0.2}),
    "TST": ("TST", {"dropout": 0.2, **SMALL}),
    "TSTPlus": ("TSTPlus", {"dropout": 0.2, "attn_dropout": 0.2, **SMALL}),
    "TSiTPlus": ("TSiTPlus", {"d_model": 16, "n_heads": 2, "depth": 1, "dropout": 0.2}),
    "TransformerModel": ("TransformerModel", {"d_model": 16, "n_head": 2, "d_ffn": 16}),
    "TransformerLSTMPlus": ("TransformerRNNPlus", {"d_model": 16, "nhead": 2, "proj_dropout": 0.2}),
    "XCM": ("XCM", {"nf": 4, "fc_dropout": 0.2}),
    "XCMPlus": ("XCMPlus", {"nf": 4, "fc_dropout": 0.2}),
    "XceptionTime": ("XceptionTime", {"nf": 4}),
    "XceptionTimePlus": ("XceptionTimePlus", {"nf": 4, "fc_dropout": 0.2}),
    "mWDN": ("mWDN", {"levels": 2}),
}


def build(name: str) -> Case:
    file, options = MODELS[name]
    cls = getattr(importlib.import_module(f"tsai.models.{file}"), name)
    names = cls.__init__.__code__.co_varnames
    sizes = {"c_in": CHANNELS, "c_out": 2, "seq_len": LENGTH}
    sizes = {key: value for key, value in sizes.items() if key in names}
    window = make_windows(layout="BCL")
    return Case(cls(**sizes, **options), (window,), window_layout="BCL")


def configurations() -> Configurations:
    importlib.import_module("tsai.models.TST")
    for name in MODELS:
        yield Configuration("tsai", name, lambda n=name: build(n))
