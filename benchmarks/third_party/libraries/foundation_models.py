"""Foundation models for series on random weights: Chronos, Chronos-Bolt, MOMENT."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.third_party.case import (
    BATCH,
    CHANNELS,
    LENGTH,
    Case,
    Configuration,
    Configurations,
    make_windows,
)

HORIZON = 8
T5 = {
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 16,
    "num_layers": 1,
    "num_decoder_layers": 1,
    "num_heads": 2,
    "dropout_rate": 0.2,
    "vocab_size": 64,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}


class Tokens(nn.Module):
    """Chronos with its tokens made inside: even bins of the values."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, context: Tensor) -> Any:
        tokens = (context.clamp(-3, 3) * 8 + 32).long()
        return self.network(input_ids=tokens, labels=tokens[:, :HORIZON].contiguous()).logits


def build_chronos() -> Case:
    from transformers import T5Config, T5ForConditionalGeneration

    model = Tokens(T5ForConditionalGeneration(T5Config(**T5, use_cache=False)))
    return Case(model, (make_windows(1)[..., 0],), channels=1)


def build_bolt() -> Case:
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    own = {
        "context_length": LENGTH,
        "prediction_length": HORIZON,
        "input_patch_size": 8,
        "input_patch_stride": 8,
        "quantiles": [0.1, 0.5, 0.9],
        "use_reg_token": True,
    }
    config = T5Config(**T5, chronos_config=own, reg_token_id=1, feed_forward_proj="relu")
    context = make_windows(1)[..., 0]
    inputs = {"context": context, "target": context[:, :HORIZON]}
    model = ChronosBoltModelForForecasting(config)
    return Case(model, (), inputs, channels=1, input_arg="context")


def build_moment(task: str) -> Case:
    from argparse import Namespace

    from momentfm.models.moment import MOMENT

    own = {**T5, "model_type": "t5", "is_encoder_decoder": False}
    config = Namespace(
        task_name=task,
        seq_len=LENGTH,
        patch_len=8,
        patch_stride_len=8,
        d_model=16,
        transformer_backbone="google/flan-t5-small",
        transformer_type="encoder_only",
        t5_config=own,
        forecast_horizon=HORIZON,
        n_channels=CHANNELS,
        num_class=2,
        head_dropout=0.2,
        freeze_encoder=False,
        freeze_embedder=False,
        freeze_head=False,
        randomly_initialize_backbone=True,
        add_positional_embedding=True,
        value_embedding_bias=False,
        patch_dropout=0.2,
    )
    model = MOMENT(config)
    inputs = {"x_enc": make_windows(layout="BCL"), "input_mask": torch.ones(BATCH, LENGTH)}
    return Case(model, (), inputs, input_arg="x_enc", window_layout="BCL")


def configurations() -> Configurations:
    for coverage in ("modules", "all"):
        yield Configuration("chronos", "Chronos (T5)", build_chronos, coverage)
        yield Configuration("chronos", "Chronos-Bolt", build_bolt, coverage)
        for task in ("forecasting", "reconstruction", "classification"):
            yield Configuration(
                "momentfm", f"MOMENT {task}", lambda t=task: build_moment(t), coverage
            )
