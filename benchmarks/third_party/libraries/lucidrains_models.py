"""Einops-based transformers: x-transformers, vit-pytorch, performer-pytorch and relatives."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from torch import nn

from benchmarks.third_party.case import (
    CHANNELS,
    LENGTH,
    Case,
    Configuration,
    Configurations,
    make_windows,
)

WIDTH = 16


def part(path: str, **options: Any) -> Callable[[], nn.Module]:
    """A network by its module and class."""

    def make() -> nn.Module:
        module, _, name = path.rpartition(".")
        made: nn.Module = getattr(importlib.import_module(module), name)(**options)
        return made

    return make


def continuous(side: str, **options: Any) -> Callable[[], nn.Module]:
    """x-transformers for numbers instead of tokens."""

    def make() -> nn.Module:
        import x_transformers

        layers = getattr(x_transformers, side)(
            dim=WIDTH, depth=1, heads=2, attn_dropout=0.2, ff_dropout=0.2, **options
        )
        return x_transformers.ContinuousTransformerWrapper(
            max_seq_len=LENGTH,
            dim_in=CHANNELS,
            dim_out=CHANNELS,
            emb_dropout=0.2,
            attn_layers=layers,
        )

    return make


X: dict[str, dict[str, Any]] = {
    "plain": {},
    "flash": {"attn_flash": True},
    "rotary": {"rotary_pos_emb": True},
    "alibi": {"alibi_pos_bias": True},
    "relative": {"rel_pos_bias": True},
    "glu": {"ff_glu": True},
    "swish": {"ff_glu": True, "ff_swish": True},
    "rmsnorm": {"use_rmsnorm": True},
    "scalenorm": {"use_scalenorm": True},
    "sandwich": {"sandwich_norm": True},
    "talking heads": {"attn_talking_heads": True},
    "memory": {"attn_num_mem_kv": 2},
    "gated residual": {"gate_residual": True},
    "kv heads": {"attn_kv_heads": 1},
    "layer dropout": {"layer_dropout": 0.2},
    "post norm": {"pre_norm": False},
}
SEQUENCES: dict[str, tuple[str, Callable[[], nn.Module]]] = {  # take [B, L, WIDTH]
    "Performer": (
        "performer-pytorch",
        part(
            "performer_pytorch.Performer",
            dim=WIDTH,
            depth=1,
            heads=2,
            dim_head=8,
            attn_dropout=0.2,
            ff_dropout=0.2,
        ),
    ),
    "LinearAttentionTransformer": (
        "linear-attention-transformer",
        part(
            "linear_attention_transformer.LinearAttentionTransformer",
            dim=WIDTH,
            depth=1,
            heads=2,
            max_seq_len=LENGTH,
            n_local_attn_heads=0,
            attn_dropout=0.2,
            ff_dropout=0.2,
        ),
    ),
    "LocalMHA": (
        "local-attention",
        part(
            "local_attention.LocalMHA",
            dim=WIDTH,
            window_size=8,
            heads=2,
            dim_head=8,
            dropout=0.2,
        ),
    ),
    "Nystromformer": (
        "nystrom-attention",
        part(
            "nystrom_attention.Nystromformer",
            dim=WIDTH,
            depth=1,
            heads=2,
            dim_head=8,
            num_landmarks=8,
            attn_dropout=0.2,
            ff_dropout=0.2,
        ),
    ),
    "Reformer": (
        "reformer-pytorch",
        part(
            "reformer_pytorch.Reformer",
            dim=WIDTH,
            depth=1,
            heads=2,
            bucket_size=8,
            lsh_dropout=0.2,
            ff_dropout=0.2,
        ),
    ),
    "LSHSelfAttention": (
        "reformer-pytorch",
        part(
            "reformer_pytorch.LSHSelfAttention",
            dim=WIDTH,
            heads=2,
            bucket_size=8,
            dropout=0.2,
            post_attn_dropout=0.2,
        ),
    ),
}
CHANNELS_FIRST: dict[str, tuple[str, Callable[[], nn.Module]]] = {  # take [B, C, L]
    "vit_1d ViT": (
        "vit-pytorch",
        part(
            "vit_pytorch.vit_1d.ViT",
            seq_len=LENGTH,
            patch_size=8,
            channels=CHANNELS,
            num_classes=2,
            dim=WIDTH,
            depth=1,
            heads=2,
            mlp_dim=16,
            dropout=0.2,
            emb_dropout=0.2,
        ),
    ),
    "pytorch_tcn TCN": (
        "pytorch-tcn",
        part("pytorch_tcn.TCN", num_inputs=CHANNELS, num_channels=[8, 8], dropout=0.2),
    ),
}
SERIES: dict[str, tuple[str, Callable[[], nn.Module]]] = {  # take [B, L, C]
    name: (
        "iTransformer",
        part(
            f"iTransformer.{name}",
            num_variates=CHANNELS,
            lookback_len=LENGTH,
            pred_length=8,
            dim=WIDTH,
            depth=1,
            heads=2,
            dim_head=8,
            attn_dropout=0.2,
            ff_dropout=0.2,
            **options,
        ),
    )
    for name, options in {"iTransformer": {}, "iTransformerFFT": {}}.items()
}


def configurations() -> Configurations:
    for side in ("Encoder", "Decoder"):
        for name, options in X.items():
            make = continuous(side, **options)
            yield Configuration(
                "x-transformers", f"{side} {name}", lambda m=make: Case(m(), (make_windows(),))
            )
    for name, (library, make) in SEQUENCES.items():
        yield Configuration(
            library,
            name,
            lambda m=make: Case(m(), (make_windows(WIDTH),), channels=WIDTH),
        )
    for name, (library, make) in CHANNELS_FIRST.items():
        yield Configuration(
            library,
            name,
            lambda m=make: Case(m(), (make_windows(layout="BCL"),), window_layout="BCL"),
        )
    for name, (library, make) in SERIES.items():
        yield Configuration(library, name, lambda m=make: Case(m(), (make_windows(),)))
