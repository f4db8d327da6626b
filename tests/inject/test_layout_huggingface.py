"""The layouts of Hugging Face's time-series models."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

import sacm

from .forced_rates import check_every_site

transformers = pytest.importorskip("transformers", reason="needs the `integrations` extra")

BATCH, LENGTH, CHANNELS, HORIZON = 5, 32, 3, 8


def patch_tst() -> torch.nn.Module:
    return transformers.PatchTSTForPrediction(
        transformers.PatchTSTConfig(
            num_input_channels=CHANNELS,
            context_length=LENGTH,
            prediction_length=HORIZON,
            patch_length=8,
            patch_stride=8,
            d_model=16,
            num_attention_heads=2,
            num_hidden_layers=2,
            ffn_dim=16,
            attention_dropout=0.1,
            ff_dropout=0.1,
            path_dropout=0.1,
            head_dropout=0.1,
            positional_encoding_type="random",
            positional_dropout=0.1,
        )
    )


def patch_tsmixer() -> torch.nn.Module:
    return transformers.PatchTSMixerForPrediction(
        transformers.PatchTSMixerConfig(
            num_input_channels=CHANNELS,
            context_length=LENGTH,
            prediction_length=HORIZON,
            patch_length=8,
            patch_stride=8,
            d_model=8,
            num_layers=2,
            dropout=0.1,
            head_dropout=0.1,
        )
    )


def long_series(config: type, model: type) -> torch.nn.Module:
    """Informer or Autoformer, with every kind of dropout on."""
    return model(
        config(
            input_size=CHANNELS,
            prediction_length=HORIZON,
            context_length=LENGTH - 2,
            lags_sequence=[1, 2],
            num_time_features=1,
            d_model=16,
            encoder_layers=2,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=16,
            decoder_ffn_dim=16,
            dropout=0.1,
            attention_dropout=0.1,
            activation_dropout=0.1,
        )
    )


def arguments(x: Tensor, *, long: bool) -> dict[str, Any]:
    if not long:
        return {"past_values": x}
    generator = torch.Generator().manual_seed(1)
    return {
        "past_values": x,
        "past_time_features": torch.rand(len(x), LENGTH, 1, generator=generator),
        "past_observed_mask": torch.ones_like(x),
        "future_values": torch.randn(len(x), HORIZON, CHANNELS, generator=generator),
        "future_time_features": torch.rand(len(x), HORIZON, 1, generator=generator),
    }


MODELS = {
    "PatchTST": patch_tst,
    "PatchTSMixer": patch_tsmixer,
    "Informer": lambda: long_series(
        transformers.InformerConfig, transformers.InformerForPrediction
    ),
    "Autoformer": lambda: long_series(
        transformers.AutoformerConfig, transformers.AutoformerForPrediction
    ),
}
# Sites by coverage. Informer and Autoformer drop by function only; of Autoformer's attention, which
# aggregates lags, nothing drops.
SITES = {"PatchTST": (8, 10), "PatchTSMixer": (9, 9), "Informer": (0, 16), "Autoformer": (0, 12)}


@pytest.mark.parametrize("name", MODELS)
def test_everything_covered(name: str) -> None:
    torch.manual_seed(0)
    model, x = MODELS[name](), torch.randn(BATCH, LENGTH, CHANNELS)
    long = name in ("Informer", "Autoformer")

    def run(windows: Tensor) -> object:
        return model(**arguments(windows, long=long))

    with warnings.catch_warnings():
        # Informer samples keys at evaluation, which is reported.
        warnings.simplefilter("ignore", sacm.SACMWarning)
        modulator = sacm.attach(
            model,
            channels=CHANNELS,
            coverage="all",
            input_arg="past_values",
            example_inputs=arguments(x, long=long),
        )
    # Autoformer weighs the heads of one window with the lags of another.
    checked = check_every_site(model, modulator, run, x, leaky=name == "Autoformer")
    assert len(checked) == SITES[name][1]
    assert bool(modulator.random_evaluation) == (name == "Informer")


@pytest.mark.parametrize("name", ["PatchTST", "PatchTSMixer"])
def test_modules_only(name: str) -> None:
    torch.manual_seed(0)
    model, x = MODELS[name](), torch.randn(BATCH, LENGTH, CHANNELS)
    modulator = sacm.attach(
        model, channels=CHANNELS, input_arg="past_values", example_inputs={"past_values": x}
    )
    checked = check_every_site(model, modulator, lambda w: model(past_values=w), x)
    assert len(checked) == SITES[name][0]


@pytest.mark.parametrize("name", ["Informer", "Autoformer"])
def test_a_model_that_drops_by_function_only_says_so(name: str) -> None:
    model = MODELS[name]()
    keys = list(model.state_dict())
    with pytest.warns(sacm.SACMWarning, match="coverage='all'"):
        sacm.attach(model, channels=CHANNELS, input_arg="past_values")
    assert list(model.state_dict()) == keys


def test_gradient_checkpointing_gives_the_same_gradients() -> None:
    """Hugging Face's own switch, whose re-run must find the same masks and rates."""

    def gradients(checkpointing: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = MODELS["Autoformer"]()
        model.config.encoder_layerdrop = model.config.decoder_layerdrop = 0.0
        for part in model.modules():
            if hasattr(part, "layerdrop"):
                part.layerdrop = 0.0
        inputs = arguments(torch.randn(BATCH, LENGTH, CHANNELS), long=True)
        sacm.attach(
            model,
            channels=CHANNELS,
            coverage="all",
            input_arg="past_values",
            example_inputs=inputs,
        )
        if checkpointing:
            model.gradient_checkpointing_enable()
        model.train()
        torch.manual_seed(1)
        model(**inputs).loss.backward()
        return [p.grad for p in model.parameters() if p.grad is not None]

    for plain, again in zip(gradients(False), gradients(True), strict=True):
        torch.testing.assert_close(again, plain)
