"""Fine-tune foundation models for time series with SACM and with a guard.

Each model is made small and with random weights, so that the script runs without a download. With
`--weights` the real weights are loaded instead, from a folder or from the Hugging Face hub:

    --model patchtst --weights ibm-granite/granite-timeseries-patchtst
    --model timesfm --weights google/timesfm-2.0-500m-pytorch
    --model timesfm2_5 --weights google/timesfm-2.5-200m-transformers
    --model bolt --weights amazon/chronos-bolt-small
    --model moment --weights AutonLab/MOMENT-1-small

`patchtst`, `timesfm` and `chronos` need transformers, `bolt` needs chronos-forecasting and `moment`
momentfm.

Run: python examples/foundation_models.py [--model NAME] [--weights NAME] [--quick]
"""

from __future__ import annotations

import argparse
from argparse import Namespace
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import sacm

LENGTH, HORIZON = 64, 16
T5_SIZES = {
    "d_model": 32,
    "d_kv": 16,
    "d_ff": 64,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 2,
    "dropout_rate": 0.1,
    "decoder_start_token_id": 0,
}


class Tuned(NamedTuple):
    """A model, where its window is, and how a batch `[B, LENGTH + HORIZON]` becomes its loss."""

    model: nn.Module
    input_arg: str
    layout: Literal["BLC", "BCL"]
    loss: Callable[[nn.Module, Tensor], Tensor]


def make_patchtst(weights: str | None) -> Tuned:
    """PatchTST of transformers."""
    from transformers import PatchTSTConfig, PatchTSTForPrediction

    sizes = {"num_input_channels": 1, "context_length": LENGTH, "prediction_length": HORIZON}
    patches = {"patch_length": 8, "patch_stride": 8, "loss": "mse", "ff_dropout": 0.1}
    small = {"d_model": 32, "num_attention_heads": 2, "num_hidden_layers": 2, "ffn_dim": 64}
    if weights is None:
        model = PatchTSTForPrediction(PatchTSTConfig(**sizes, **patches, **small))
    else:
        model = PatchTSTForPrediction.from_pretrained(
            weights, **sizes, ff_dropout=0.1, ignore_mismatched_sizes=True
        )

    def loss(network: nn.Module, rows: Tensor) -> Tensor:
        window, target = rows[:, :LENGTH, None], rows[:, LENGTH:, None]
        return network(past_values=window, future_values=target).loss

    return Tuned(model, "past_values", "BLC", loss)


TIMESFM_SIZES = {
    "patch_length": 8,
    "context_length": LENGTH,
    "horizon_length": HORIZON,
    "hidden_size": 32,
    "intermediate_size": 64,
    "head_dim": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
}
ATTENTION = {"attention_dropout": 0.1}  # the only dropout of TimesFM; its own rate is 0


def future_loss(network: nn.Module, rows: Tensor) -> Tensor:
    """Return the loss of a model that forecasts as far as its own horizon; we know less of it."""
    forecast = network(past_values=rows[:, :LENGTH]).mean_predictions[:, :HORIZON]
    return (forecast - rows[:, LENGTH:]).square().mean()


def make_timesfm(weights: str | None) -> Tuned:
    """TimesFM 1 and 2: a decoder over patches."""
    from transformers import TimesFmConfig, TimesFmModelForPrediction

    if weights is None:
        model = TimesFmModelForPrediction(TimesFmConfig(**TIMESFM_SIZES, **ATTENTION))
    else:
        model = TimesFmModelForPrediction.from_pretrained(weights, **ATTENTION)
    return Tuned(model, "past_values", "BLC", future_loss)


def make_timesfm2_5(weights: str | None) -> Tuned:
    """TimesFM 2.5, which has quantiles of its own."""
    from transformers import TimesFm2_5Config, TimesFm2_5ModelForPrediction

    if weights is None:
        sizes = {**TIMESFM_SIZES, "num_key_value_heads": 2, "output_quantile_len": HORIZON}
        model = TimesFm2_5ModelForPrediction(TimesFm2_5Config(**sizes, **ATTENTION))
    else:
        model = TimesFm2_5ModelForPrediction.from_pretrained(weights, **ATTENTION)
    return Tuned(model, "past_values", "BLC", future_loss)


BINS, LIMIT, SPECIAL = (
    512,
    15.0,
    2,
)  # as Chronos: even bins of the scaled values, two special tokens


def to_tokens(rows: Tensor) -> Tensor:
    """Scale rows by the mean size of their window and give the number of each value's bin."""
    scaled = rows / rows[:, :LENGTH].abs().mean(dim=1, keepdim=True).clamp(min=1e-6)
    levels = (scaled.clamp(-LIMIT, LIMIT) + LIMIT) / (2 * LIMIT)
    return SPECIAL + (levels * (BINS - SPECIAL - 1)).long()


class FromValues(nn.Module):
    """Chronos with its tokens made inside, so that its window is a tensor of values."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, context: Tensor, target: Tensor) -> Tensor:
        tokens = to_tokens(torch.cat([context, target], dim=1))
        window, labels = tokens.split([LENGTH, HORIZON], dim=1)
        return self.network(input_ids=window, labels=labels.contiguous()).loss


def make_chronos(weights: str | None) -> Tuned:
    """Chronos: a T5 over tokens of the scaled values."""
    from transformers import T5Config, T5ForConditionalGeneration

    if weights is None:
        model = T5ForConditionalGeneration(T5Config(**T5_SIZES, vocab_size=BINS))
    else:
        model = T5ForConditionalGeneration.from_pretrained(weights, dropout_rate=0.1)

    def loss(network: nn.Module, rows: Tensor) -> Tensor:
        return network(context=rows[:, :LENGTH], target=rows[:, LENGTH:])

    return Tuned(FromValues(model), "context", "BLC", loss)


def make_bolt(weights: str | None) -> Tuned:
    """Chronos-Bolt: patches of the values themselves, quantiles at once."""
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    if weights is None:
        own = {
            "context_length": LENGTH,
            "prediction_length": HORIZON,
            "input_patch_size": 8,
            "input_patch_stride": 8,
            "quantiles": [0.1, 0.5, 0.9],
            "use_reg_token": True,
        }
        model = ChronosBoltModelForForecasting(
            T5Config(**T5_SIZES, vocab_size=2, reg_token_id=1, chronos_config=own)
        )
    else:
        model = ChronosBoltModelForForecasting.from_pretrained(weights)

    def loss(network: nn.Module, rows: Tensor) -> Tensor:
        return network(context=rows[:, :LENGTH], target=rows[:, LENGTH:]).loss

    return Tuned(model, "context", "BLC", loss)


def make_moment(weights: str | None) -> Tuned:
    """MOMENT with a forecasting head."""
    from momentfm import MOMENTPipeline
    from momentfm.models.moment import MOMENT

    own = {"task_name": "forecasting", "forecast_horizon": HORIZON, "head_dropout": 0.1}
    free = {"freeze_encoder": False, "freeze_embedder": False, "freeze_head": False}
    if weights is None:
        sizes = {"seq_len": LENGTH, "patch_len": 8, "patch_stride_len": 8, "d_model": 32}
        body = {
            "transformer_backbone": "t5",
            "transformer_type": "encoder_only",
            "t5_config": {**T5_SIZES, "vocab_size": 2},
            "randomly_initialize_backbone": True,
        }
        model = MOMENT(Namespace(**own, **free, **sizes, **body))
    else:
        model = MOMENTPipeline.from_pretrained(weights, model_kwargs={**own, **free})
        model.init()

    def loss(network: nn.Module, rows: Tensor) -> Tensor:
        window, target = rows[:, None, :LENGTH], rows[:, None, LENGTH:]
        forecast = network(x_enc=window, input_mask=torch.ones(len(rows), LENGTH)).forecast
        return (forecast - target).square().mean()

    return Tuned(model, "x_enc", "BCL", loss)


MODELS = {
    "patchtst": make_patchtst,
    "timesfm": make_timesfm,
    "timesfm2_5": make_timesfm2_5,
    "chronos": make_chronos,
    "bolt": make_bolt,
    "moment": make_moment,
}


def make_series(count: int) -> np.ndarray:
    """Return a noisy sine with a stuck sensor now and then, `[T, 1]`."""
    generator = np.random.default_rng(0)
    values = np.sin(np.arange(count) / 5) + 0.1 * generator.normal(size=count)
    for start in generator.integers(0, count - 20, count // 200):
        values[start : start + 15] = 4.0
    return values[:, None].astype(np.float32)


def tune(tuned: Tuned, series: np.ndarray, steps: int) -> sacm.CapacityModulator:
    """Attach, then train some steps on windows drawn from the series."""
    modulator = sacm.attach(
        tuned.model,
        channels=1,
        input_arg=tuned.input_arg,
        window_layout=tuned.layout,
        coverage="all",
    )
    optimizer = torch.optim.AdamW(tuned.model.parameters(), lr=1e-3)
    windows = torch.from_numpy(series[:, 0]).unfold(0, LENGTH + HORIZON, 1)
    tuned.model.train()
    for _ in range(steps):
        rows = windows[torch.randint(len(windows), (16,))]
        optimizer.zero_grad()
        loss = tuned.loss(tuned.model, rows)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}, mean rate {modulator.rates.mean():.3f}")
    return modulator


def main(arguments: list[str] | None = None) -> None:
    """Run the example; the arguments are those of the command line."""
    parser = argparse.ArgumentParser(description="Fine-tune foundation models with SACM.")
    parser.add_argument("--model", choices=[*MODELS, "all"], default="patchtst")
    parser.add_argument("--weights", help="a folder or a name on the hub; default: random weights")
    parser.add_argument("--quick", action="store_true", help="a few steps only")
    options = parser.parse_args(arguments)

    series = make_series(1000)
    guard = sacm.Guard(window=LENGTH).fit(series)
    for name in MODELS if options.model == "all" else [options.model]:
        torch.manual_seed(0)
        print(f"== {name}")
        tuned = MODELS[name](options.weights)
        sacm.protect(
            tuned.model, guard, input_arg=tuned.input_arg, window_layout=tuned.layout
        )  # windows are repaired
        modulator = tune(tuned, series, 5 if options.quick else 100)
        print(str(modulator.summary()).splitlines()[-1])
        sacm.detach(tuned.model)  # the ordinary model again, still protected


if __name__ == "__main__":
    main()
