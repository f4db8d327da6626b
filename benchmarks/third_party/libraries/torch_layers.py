"""Layers of torch itself."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from benchmarks.third_party.case import Case, Configuration, Configurations, make_windows

WIDTH = 8


class Both(nn.Module):
    """Feeds a window to both sides of an encoder-decoder."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, window: Tensor) -> Any:
        return self.network(window, window)


class Attention(nn.Module):
    """Self-attention alone."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, dropout=0.2, batch_first=True, **options)

    def forward(self, window: Tensor) -> Any:
        return self.attention(window, window, window, need_weights=False)[0]


def layer(**options: Any) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(WIDTH, 2, 16, 0.2, batch_first=True, **options)


MODELS = {
    "TransformerEncoderLayer": layer,
    "TransformerEncoderLayer norm_first": lambda: layer(norm_first=True),
    "TransformerEncoderLayer gelu": lambda: layer(activation="gelu"),
    "TransformerEncoder of 2": lambda: nn.TransformerEncoder(layer(), 2),
    "TransformerDecoderLayer": lambda: Both(
        nn.TransformerDecoderLayer(WIDTH, 2, 16, 0.2, batch_first=True)
    ),
    "Transformer": lambda: Both(nn.Transformer(WIDTH, 2, 1, 1, 16, 0.2, batch_first=True)),
    "MultiheadAttention": Attention,
    "MultiheadAttention bias_kv": lambda: Attention(add_bias_kv=True),
    "LSTM of 2 with dropout": lambda: nn.LSTM(WIDTH, 8, 2, dropout=0.2, batch_first=True),
    "GRU of 2 with dropout": lambda: nn.GRU(WIDTH, 8, 2, dropout=0.2, batch_first=True),
    "Linear and AlphaDropout": lambda: nn.Sequential(nn.Linear(WIDTH, 8), nn.AlphaDropout(0.2)),
    "Conv1d and Dropout1d": lambda: nn.Sequential(nn.Conv1d(32, 8, 3), nn.Dropout1d(0.2)),
}


def configurations() -> Configurations:
    for name, make in MODELS.items():
        yield Configuration(
            "torch", name, lambda make=make: Case(make(), (make_windows(WIDTH),), channels=WIDTH)
        )
