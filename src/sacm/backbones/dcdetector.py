"""DCdetector: attention between patches against attention inside them.

Differs from the publication's code: the loss is the disagreement itself and so is the score, as
first published; in-patch tokens are positions within the patch; the rows of both maps sum to 1;
there is no value path, on which no output would depend.

Dropout sites: for each patch size q the embeddings `[B*C, L/q, d]` and `[B*C, q, d]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sacm.backbones.base import DetectorNetwork, ScoreKind
from sacm.backbones.blocks.embedding import Tokens
from sacm.backbones.blocks.normalisation import RevIN, symmetric_distance
from sacm.backbones.blocks.transformer import check_heads, split_heads
from sacm.backbones.registry import register
from sacm.errors import ArgumentError

TARGETS = (3, 5, 7)  # the published patch sizes, met exactly at L = 105
REFERENCE = "Yang et al., KDD 2023, arXiv:2306.10347"


@dataclass(frozen=True)
class DCdetectorConfig:
    """Sizes of the paper's runs."""

    width: int = 128
    heads: int = 4
    layers: int = 2
    dropout: float = 0.1


SMALL = DCdetectorConfig(width=32, heads=2)


def patch_sizes(input_len: int) -> list[int]:
    """For each target the nearest unused proper divisor of `input_len`, ties to the larger."""
    divisors = [size for size in range(2, input_len) if input_len % size == 0]
    if not divisors:
        raise ArgumentError(
            f"DCdetector cuts windows into equal patches, but input_len={input_len} has no divisor "
            "besides 1 and itself: use another length, such as 100."
        )
    chosen: list[int] = []
    for target in TARGETS[: len(divisors)]:
        unused = [size for size in divisors if size not in chosen]
        chosen.append(min(unused, key=lambda size: (abs(size - target), -size)))
    return chosen


class Relation(nn.Module):
    """Attention weights without values, mean of channels: `[B*C, T, d]` to `[B, h, T, T]`."""

    def __init__(self, config: DCdetectorConfig) -> None:
        super().__init__()
        check_heads(config.width, config.heads)
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)

    def forward(self, z: Tensor, channels: int) -> Tensor:
        q = split_heads(self.query(z), self.heads)  # [B*C, h, T, d/h]
        k = split_heads(self.key(z), self.heads)
        weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return weights.unflatten(0, (-1, channels)).mean(dim=1)


@register("DCdetector", paper=DCdetectorConfig(), small=SMALL, cost="medium", reference=REFERENCE)
class DCdetector(DetectorNetwork):
    """Between-patch and in-patch attention at several patch sizes, trained to agree."""

    def __init__(self, config: DCdetectorConfig, *, input_len: int, channels: int) -> None:
        super().__init__(input_len=input_len, channels=channels)
        self.patch_sizes = patch_sizes(input_len)
        self.revin = RevIN()
        sizes = [(size, input_len // size) for size in self.patch_sizes]
        self.between = nn.ModuleList(Tokens(size, config, length=count) for size, count in sizes)
        self.inside = nn.ModuleList(Tokens(count, config, length=size) for size, count in sizes)
        self.relations = nn.ModuleList(Relation(config) for _ in range(config.layers))
        self.state_layouts({"between": channels, "inside": channels})

    def forward(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Pairs of maps `[B, h, L, L]`, between patches and inside, per patch size and layer."""
        self.check_window(x)
        x, _ = self.revin.normalise(x)
        series = x.transpose(1, 2).flatten(0, 1)  # [B*C, L]
        pairs = []
        for size, between, inside in zip(self.patch_sizes, self.between, self.inside, strict=True):
            patches = series.unflatten(1, (-1, size))  # [B*C, N, q]
            outer, inner = between(patches), inside(patches.transpose(1, 2))
            count = patches.shape[1]
            for relation in self.relations:
                coarse = relation(outer, self.channels)  # [B, h, N, N]: an entry fills a block
                coarse = coarse.repeat_interleave(size, dim=-1).repeat_interleave(size, dim=-2)
                fine = relation(inner, self.channels)  # [B, h, q, q]: one map for all patches
                pairs.append((coarse / size, fine.repeat(1, 1, count, count) / count))
        return pairs

    def training_loss(self, x: Tensor) -> Tensor:
        terms = [
            symmetric_distance(first, second.detach()) + symmetric_distance(second, first.detach())
            for first, second in self(x)  # each moves towards the other, which is held still
        ]
        return torch.stack(terms).mean() / 2

    def anomaly_scores(self, x: Tensor, *, score: ScoreKind = "native") -> Tensor:
        self.check_score(score)
        if score == "reconstruction":
            raise ArgumentError("DCdetector reconstructs nothing: use the native score.")
        return torch.stack([symmetric_distance(*pair) for pair in self(x)]).mean(dim=0)
