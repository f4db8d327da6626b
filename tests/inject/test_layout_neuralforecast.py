"""The layouts of neuralforecast's models, whose forward takes one dictionary."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

import sacm

from .forced_rates import check_every_site

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own imports warn
    models = pytest.importorskip("neuralforecast.models", reason="needs the `integrations` extra")

BATCH, LENGTH, HORIZON, SERIES = 5, 32, 8, 4

SMALL = {"hidden_size": 16, "conv_hidden_size": 8, "n_head": 2}
UNIVARIATE: dict[str, dict[str, Any]] = {
    "PatchTST": {
        "patch_len": 8,
        "stride": 4,
        "hidden_size": 16,
        "n_heads": 2,
        "encoder_layers": 1,
        "linear_hidden_size": 16,
        "attn_dropout": 0.1,
        "head_dropout": 0.1,
    },
    "TimesNet": {"hidden_size": 8, "conv_hidden_size": 8, "encoder_layers": 1, "num_kernels": 2},
    "NHITS": {"mlp_units": [[16, 16]] * 3, "dropout_prob_theta": 0.1},
    "Informer": SMALL,
    "Autoformer": SMALL,
    "FEDformer": SMALL | {"n_head": 8, "modes": 4},
    "VanillaTransformer": SMALL,
    "TFT": {"hidden_size": 16, "n_head": 2},
    "TiDE": {"hidden_size": 16, "decoder_output_dim": 8},
    "BiTCN": {"hidden_size": 8},
}
MULTIVARIATE: dict[str, dict[str, Any]] = {
    "iTransformer": {"hidden_size": 16, "n_heads": 2, "e_layers": 1, "d_ff": 16},
    "TSMixer": {"ff_dim": 8},
    "TimeMixer": {"d_model": 8, "d_ff": 8, "e_layers": 1},
    "TimeXer": {"patch_len": 8, "hidden_size": 16, "n_heads": 2, "e_layers": 1, "d_ff": 16},
    "SOFTS": {"hidden_size": 16, "d_core": 16, "e_layers": 1, "d_ff": 16},
}
# Dropouts that are declared but never called, as the summary says of each.
DEAD = {"Informer": 4, "Autoformer": 4, "VanillaTransformer": 4, "iTransformer": 1, "TimeXer": 2}
DEAD |= {"TimeMixer": 1}


def build(name: str) -> tuple[torch.nn.Module, int]:
    """The model and its number of channels."""
    series = {"n_series": SERIES} if name in MULTIVARIATE else {}
    options = {**UNIVARIATE, **MULTIVARIATE}[name]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(models, name)(
            h=HORIZON, input_size=LENGTH, max_steps=1, **series, **options
        )
    return model, SERIES if series else 1


def batch_of(x: Tensor) -> dict[str, Tensor | None]:
    none = ("outsample_y", "outsample_mask", "futr_exog", "hist_exog", "stat_exog")
    return {"insample_y": x, "insample_mask": torch.ones_like(x), **dict.fromkeys(none)}


def window_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    return args[0]["insample_y"]


@pytest.mark.parametrize("coverage", ["modules", "all"])
@pytest.mark.parametrize("name", [*UNIVARIATE, *MULTIVARIATE])
def test_every_live_site(name: str, coverage: str) -> None:
    model, channels = build(name)
    x = torch.randn(BATCH, LENGTH, channels, generator=torch.Generator().manual_seed(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sacm.SACMWarning)
        modulator = sacm.attach(
            model,
            channels=channels,
            coverage=coverage,
            input_arg=window_of,
            example_inputs=(batch_of(x),),
        )
    assert check_every_site(model, modulator, lambda w: model(batch_of(w)), x)
    assert sum(site.reached is False for site in modulator.sites) == DEAD.get(name, 0) + sum(
        not site.adaptive for site in modulator.sites
    )
    assert bool(modulator.random_evaluation) == (name == "Informer")
