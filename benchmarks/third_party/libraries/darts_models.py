"""Networks of darts, made by fitting its models for one batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.third_party.case import (
    CHANNELS,
    LENGTH,
    Case,
    Configuration,
    Configurations,
    make_windows,
)

HORIZON = 8
MODELS: dict[str, dict[str, Any]] = {
    "BlockRNNModel": {"model": "LSTM", "hidden_dim": 8, "n_rnn_layers": 2, "dropout": 0.2},
    "NBEATSModel": {"num_stacks": 2, "num_blocks": 1, "layer_widths": 16, "dropout": 0.2},
    "NHiTSModel": {"num_stacks": 2, "num_blocks": 1, "layer_widths": 16, "dropout": 0.2},
    "TCNModel": {"num_filters": 4, "kernel_size": 3, "dropout": 0.2},
    "TransformerModel": {
        "d_model": 16,
        "nhead": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "dim_feedforward": 16,
        "dropout": 0.2,
    },
    "TFTModel": {
        "hidden_size": 8,
        "num_attention_heads": 2,
        "dropout": 0.2,
        "add_relative_index": True,
    },
    "TiDEModel": {"hidden_size": 8, "dropout": 0.2, "use_layer_norm": True},
    "TSMixerModel": {"hidden_size": 8, "ff_size": 8, "dropout": 0.2},
    "DLinearModel": {},
    "NLinearModel": {},
}


def build(name: str, extra: dict[str, Any]) -> Case:
    import darts.models
    from darts import TimeSeries
    from darts.utils.data.torch_datasets.utils import PLModuleInput

    series = TimeSeries.from_values(
        np.random.default_rng(0).normal(size=(60, CHANNELS)).astype(np.float32)
    )
    trainer = {
        "accelerator": "cpu",
        "max_steps": 1,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "logger": False,
        "enable_checkpointing": False,
    }
    cls = getattr(darts.models, name)
    model = cls(
        input_chunk_length=LENGTH,
        output_chunk_length=HORIZON,
        n_epochs=1,
        random_state=0,
        pl_trainer_kwargs=trainer,
        **MODELS[name],
        **extra,
    )
    model.fit(series)
    window = make_windows()
    covariates = {}
    if name == "TFTModel":
        import torch

        index = torch.arange(LENGTH + HORIZON).float().expand(len(window), -1)[..., None]
        covariates = {
            "historic_future_covariates": index[:, :LENGTH],
            "future_covariates": index[:, LENGTH:],
        }
    batch = PLModuleInput(past_target=window, **covariates)
    from sacm.integrations.darts import WINDOW

    return Case(model.model, (batch,), input_arg=WINDOW)


def configurations() -> Configurations:
    import darts.models  # noqa: F401  # so that a missing library is known here

    for name in MODELS:
        for coverage in ("modules", "all"):
            yield Configuration("darts", name, lambda n=name: build(n, {}), coverage)
    for name in ("NHiTSModel", "TiDEModel", "TransformerModel", "TSMixerModel"):
        extra = {"use_reversible_instance_norm": True}
        label = f"{name} with instance norm"
        yield Configuration("darts", label, lambda n=name, e=extra: build(n, e))
