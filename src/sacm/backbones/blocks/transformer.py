"""The two halves of a Transformer layer and the layer itself."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.blocks.attention import Attention


class MLP(nn.Module):
    """Linear, exact GELU, dropout on the hidden layer, Linear: `[..., d]` to `[..., d]`."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.expand = nn.Linear(width, hidden)
        self.dropout = nn.Dropout(dropout)
        self.contract = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map the last axis through the hidden layer and back."""
        return self.contract(self.dropout(F.gelu(self.expand(x))))


class EncoderLayer(nn.Module):
    """x = LN(x + attention(x)), then x = LN(x + MLP(x)); nothing is dropped on the residuals."""

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        dropout: float,
        attention: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.attention = Attention(width, heads, dropout) if attention is None else attention
        self.attention_norm = nn.LayerNorm(width)
        self.mlp = MLP(width, hidden, dropout)
        self.mlp_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, **options: Tensor) -> Tensor:
        """`[b, T, d]` to the same; `options` (memory, mask, scale, shift) go to the attention."""
        x = self.attention_norm(x + self.attention(x, **options))
        return self.mlp_norm(x + self.mlp(x))
