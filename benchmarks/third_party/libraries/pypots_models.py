"""The neural models of PyPOTS, small; its own lists say which arguments they need."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from benchmarks.third_party.case import (
    BATCH,
    CHANNELS,
    LENGTH,
    Case,
    Configuration,
    Configurations,
    make_windows,
)
from sacm.inject.window import WindowPath

SMALL: dict[str, Any] = {
    **dict.fromkeys(("n_steps", "n_pred_steps", "seq_len"), LENGTH),
    **dict.fromkeys(("n_features", "n_pred_features"), CHANNELS),
    **dict.fromkeys(("n_layers", "n_e_layers", "n_d_layers", "n_levels", "n_stacks"), 1),
    **dict.fromkeys(("d_model", "d_ffn", "d_hidden", "rnn_hidden_size", "d_lora"), 16),
    **dict.fromkeys(("n_heads", "top_k", "n_kernels", "n_classes", "n_fod"), 2),
    **dict.fromkeys(("d_k", "d_v", "d_inner"), 8),
    **dict.fromkeys(("dropout", "attn_dropout"), 0.2),
    "factor": 3,
    "patch_size": 8,
    "patch_stride": 8,
    "stride": 8,
    "patch_len": 8,
    "seg_len": 8,
    "moving_avg_window_size": 5,
    "window_size": [2],
    "inner_size": 2,
    "bucket_size": 4,
    "n_hashes": 2,
    "kernel_size": 3,
    "downsampling_layers": 1,
    "downsampling_window": 2,
    "d_embed": 8,
    "d_input_embed": 8,
    "d_learnable_embed": 8,
    "d_proj": 4,
    "d_temporal_emb": 8,
    "conv_kernel": [2, 3],
    "modes1": 4,
    "multiscale": [1, 2],
    "ratio": 0.5,
    "mode_type": 0,
    "version": "Fourier",
    "anomaly_rate": 0.1,
    "n_temporal_heads": 2,
    "downsampling_ratio": 2,
    "d_embedding": 8,
    "term": "long",
    "n_encoder_layers": 1,
    "n_decoder_layers": 1,
    "win_size": 2,
    "causal": False,
    "d_projector_hidden": [8, 8],
    "n_projector_hidden_layers": 2,
    "n_groups": 1,
    "d_feature_encode": 2,
    "d_temporal_decoder_hidden": 8,
    "ffn_ratio": 1,
    "num_blocks": [1, 1],
    "large_size": [5, 5],
    "small_size": [3, 3],
    "dims": [8, 8],
    "small_kernel_merged": False,
    "mask_ratio": 0.4,
    "cut_freq": 4,
    "individual": False,
}
TASKS = {
    "imputation": """SAITS Transformer iTransformer ETSformer FEDformer FiLM FreTS Crossformer
        TimesNet PatchTST DLinear Informer Autoformer Reformer NonstationaryTransformer Pyraformer
        SCINet RevIN_SCINet MICN TiDE StemGNN ImputeFormer TimeMixer TEFN SegRNN BRITS MRNN TCN
        GRUD ModernTCN TimeMixerPP TSLANet""",
    "classification": "SAITS TimesNet iTransformer PatchTST Autoformer TEFN BRITS GRUD",
    "forecasting": "Transformer FITS TEFN TimeMixer TimesNet SegRNN DLinear FiLM",
}


def build(task: str, name: str) -> Case:
    import importlib

    cls = getattr(importlib.import_module(f"pypots.{task}"), name)
    known = inspect.signature(cls.__init__).parameters
    options = {key: value for key, value in SMALL.items() if key in known}
    if name == "FEDformer":
        options |= {"n_heads": 8}  # fixed in its Fourier blocks
    model = cls(**options, device="cpu", verbose=False)
    window = make_windows()
    ones = torch.ones_like(window)
    inputs = {
        "indices": torch.arange(BATCH),
        "X": window,
        "missing_mask": ones,
        "X_ori": window,
        "indicating_mask": ones,
        "X_pred": window,
        "X_pred_missing_mask": ones,
        "y": torch.arange(BATCH) % 2,
        "deltas": torch.zeros_like(window),
        "X_filledLOCF": window,
        "empirical_mean": torch.zeros(CHANNELS),
    }
    both = {"X": window, "missing_mask": ones, "deltas": torch.zeros_like(window)}
    inputs |= {"forward": both, "backward": both}
    return Case(model.model, (inputs,), channels=CHANNELS, input_arg=WindowPath((0, "X")))


def configurations() -> Configurations:
    import pypots  # noqa: F401  # so that a missing library is known here

    for task, names in TASKS.items():
        for name in names.split():
            yield Configuration("pypots", f"{task} {name}", lambda t=task, n=name: build(t, n))
