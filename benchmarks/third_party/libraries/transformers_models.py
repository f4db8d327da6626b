"""Models of Hugging Face transformers: for time series, and for text through their embeddings."""

from __future__ import annotations

from contextlib import suppress
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

WIDTH, HORIZON = 16, 8
SMALL: dict[str, Any] = {  # set where a configuration has the name
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embedding_size", "emb_dim"), WIDTH
    ),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff"), 16),
    **dict.fromkeys(("hidden_dim", "d_inner", "n_inner", "ffn_dim"), 16),
    **dict.fromkeys(("num_hidden_layers", "encoder_layers", "decoder_layers", "n_layer"), 2),
    **dict.fromkeys(("n_layers", "num_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "n_head", "n_heads"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "num_heads"), 2),
    **dict.fromkeys(("hidden_dropout_prob", "hidden_dropout", "dropout", "resid_pdrop"), 0.2),
    **dict.fromkeys(("attention_probs_dropout_prob", "attention_dropout", "attn_pdrop"), 0.2),
    **dict.fromkeys(("activation_dropout", "dropout_rate", "embd_pdrop", "ff_dropout"), 0.2),
    **dict.fromkeys(("positional_dropout", "path_dropout", "head_dropout"), 0.2),
    "head_dim": 8,
    "vocab_size": 40,
    "max_position_embeddings": 64,
    "attention_window": 8,
    "d_kv": 8,
}
TEXT = [
    "albert",
    "bert",
    "big_bird",
    "biogpt",
    "bloom",
    "camembert",
    "convbert",
    "data2vec-text",
    "deberta",
    "deberta-v2",
    "distilbert",
    "electra",
    "ernie",
    "esm",
    "falcon",
    "gemma",
    "gpt2",
    "gpt_bigcode",
    "gpt_neo",
    "gpt_neox",
    "gptj",
    "ibert",
    "llama",
    "longformer",
    "megatron-bert",
    "mistral",
    "mixtral",
    "mobilebert",
    "mpnet",
    "mpt",
    "mra",
    "nystromformer",
    "olmo",
    "opt",
    "phi",
    "qwen2",
    "rembert",
    "roberta",
    "roberta-prelayernorm",
    "roformer",
    "stablelm",
    "starcoder2",
    "xlm-roberta",
    "xlnet",
    "xmod",
    "yoso",
]
OWN: dict[str, dict[str, Any]] = {
    "albert": {"num_hidden_groups": 1},
    "big_bird": {"attention_type": "original_full"},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "num_layers": 2},
    "mobilebert": {"intra_bottleneck_size": 16, "true_hidden_size": 16},
    "nystromformer": {"num_landmarks": 8, "segment_means_seq_len": 32},
    "mra": {"block_per_row": 1},
    "phi": {"partial_rotary_factor": 0.5},
    "gptj": {"rotary_dim": 4},
    "yoso": {"num_hash": 2, "hash_code_len": 4},
    "mixtral": {"num_local_experts": 2, "num_experts_per_tok": 1},
}


def shrink(config: Any, kind: str = "") -> Any:
    for name, value in {**SMALL, **OWN.get(kind, {})}.items():
        with suppress(
            AttributeError, NotImplementedError
        ):  # some only say what follows from others
            if hasattr(config, name):
                setattr(config, name, value)
    config.use_cache = False
    return config


def build_text(kind: str) -> Case:
    from transformers import AutoConfig, AutoModel

    model = AutoModel.from_config(shrink(AutoConfig.for_model(kind), kind))
    width = model.get_input_embeddings().embedding_dim
    window = make_windows(width)
    mask = torch.ones(BATCH, LENGTH, dtype=torch.long)
    inputs = {"inputs_embeds": window, "attention_mask": mask}
    return Case(model, (), inputs, channels=width, input_arg="inputs_embeds")


def build_series(name: str) -> Case:
    import transformers

    family = name.partition("For")[0]
    options = {
        "num_input_channels": CHANNELS,
        "context_length": LENGTH,
        "prediction_length": HORIZON,
        "patch_length": 8,
        "patch_stride": 8,
        "num_targets": 2,
        "lags_sequence": [1, 2],
        "num_time_features": 1,
        "dropout": 0.2,
    }
    known = getattr(transformers, f"{family}Config")()
    options = {key: value for key, value in options.items() if hasattr(known, key)}
    config = shrink(getattr(transformers, f"{family}Config")(**options))
    model = getattr(transformers, name)(config)
    inputs: dict[str, Any] = {"past_values": make_windows()}
    if hasattr(config, "lags_sequence"):  # one channel, with features of time
        past = make_windows(1, LENGTH + 2)[..., 0]
        inputs = {
            "past_values": past,
            "past_time_features": torch.zeros(BATCH, LENGTH + 2, 1),
            "past_observed_mask": torch.ones_like(past),
            "future_values": past[:, :HORIZON],
            "future_time_features": torch.zeros(BATCH, HORIZON, 1),
        }
        return Case(model, (), inputs, channels=1, input_arg="past_values")
    return Case(model, (), inputs, input_arg="past_values")


SERIES = (
    *(f"PatchTSTFor{task}" for task in ("Prediction", "Classification", "Regression")),
    "PatchTSTForPretraining",
    *(f"PatchTSMixerFor{task}" for task in ("Prediction", "Pretraining")),
    "PatchTSMixerForTimeSeriesClassification",
    "PatchTSMixerForRegression",
    "TimeSeriesTransformerForPrediction",
    "InformerForPrediction",
    "AutoformerForPrediction",
)


def build_timesfm(family: str) -> Case:
    """Models over patches of a single series, whose only dropout is that of attention."""
    import transformers

    sizes = {"patch_length": 8, "context_length": LENGTH, "horizon_length": HORIZON, "head_dim": 8}
    own = {"num_key_value_heads": 2, "output_quantile_len": HORIZON, "attention_dropout": 0.2}
    known = getattr(transformers, f"{family}Config")()
    options = {key: value for key, value in {**sizes, **own}.items() if hasattr(known, key)}
    config = shrink(getattr(transformers, f"{family}Config")(**options))
    model = getattr(transformers, f"{family}ModelForPrediction")(config)
    inputs = {"past_values": make_windows(1)[..., 0]}
    return Case(model, (), inputs, channels=1, input_arg="past_values")


def build_speech(kind: str) -> Case:
    """Encoders of sound, with dropout and without masking of inputs."""
    import transformers

    config = getattr(transformers, f"{kind}Config")()
    config = shrink(config)
    for name, value in {
        "conv_dim": [8, 8],
        "conv_stride": [4, 4],
        "conv_kernel": [8, 8],
        "num_feat_extract_layers": 2,
        "num_conv_pos_embeddings": 4,
        "num_conv_pos_embedding_groups": 2,
        "apply_spec_augment": False,
        "layerdrop": 0.0,
        "feat_proj_dropout": 0.2,
    }.items():
        setattr(config, name, value)
    model = getattr(transformers, f"{kind}Model")(config)
    return Case(model, (make_windows(1, 400)[..., 0],), channels=1)


def configurations() -> Configurations:
    import transformers

    transformers.logging.set_verbosity_error()
    for name in SERIES:
        for coverage in ("modules", "all"):
            yield Configuration("transformers", name, lambda n=name: build_series(n), coverage)
    for family in ("TimesFm", "TimesFm2_5"):
        yield Configuration("transformers", family, lambda f=family: build_timesfm(f))
    for kind in TEXT:
        yield Configuration("transformers", kind, lambda k=kind: build_text(k))
    for kind in ("Wav2Vec2", "Hubert", "WavLM", "SEW", "UniSpeech"):
        yield Configuration("transformers", kind, lambda k=kind: build_speech(k))
