"""TimeFilter: a graph of patches whose relations are filtered node by node.

All patches of all channels are nodes of one graph. A router decides which kinds of relation each
node keeps (same time in another channel, same channel at another time, all others); one graph
convolution mixes what is left.

Differs from the publication's code: the balance loss counts experts, not ranks, and averages over
nodes, so that it does not grow with the graph.

Dropout sites, per block: graph weights `[B, h, C*N, C*N]`, MLP hidden layer `[B, C*N, ff]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import ForecastNetwork
from sacm.backbones.blocks.embedding import Positions
from sacm.backbones.blocks.normalisation import RevIN, widen
from sacm.backbones.blocks.transformer import MLP, check_heads, merge_heads, split_heads
from sacm.backbones.registry import register

EXPERTS = 3  # same time, same channel, the rest
REFERENCE = "Hu et al., ICML 2025, arXiv:2501.13041"


@dataclass(frozen=True)
class TimeFilterConfig:
    """Sizes of the paper's runs; `pruned_share` of each row's weakest relations is set to 0."""

    patch: int = 8
    width: int = 64
    hidden: int = 256
    heads: int = 4
    blocks: int = 3
    pruned_share: float = 0.1
    top_p: float = 0.5
    balance_weight: float = 0.05
    entropy_weight: float = 0.1
    dropout: float = 0.1


SMALL = TimeFilterConfig(width=32, hidden=64, heads=2)


def relation_regions(channels: int, patches: int) -> Tensor:
    """Which kind of relation each pair of nodes is: `[3, C*N, C*N]`, False on the diagonal."""
    node = torch.arange(channels * patches)
    channel, time = node // patches, node % patches
    same_channel = channel[:, None] == channel
    same_time = time[:, None] == time
    return torch.stack(
        (same_time & ~same_channel, same_channel & ~same_time, ~same_time & ~same_channel)
    )


def choose_experts(probabilities: Tensor, top_p: float) -> Tensor:
    """Experts in falling order while those before them hold at most `top_p`: bool `[..., 3]`."""
    falling, experts = probabilities.sort(dim=-1, descending=True)
    before = F.pad(falling.cumsum(dim=-1)[..., :-1], (1, 0))  # nothing precedes the strongest
    return torch.zeros_like(experts, dtype=torch.bool).scatter(-1, experts, before <= top_p)


class Router(nn.Module):
    """For each row of a graph `[B, h, n, n]` the experts `[B, h, n, 3]`, and their balance."""

    def __init__(self, nodes: int, config: TimeFilterConfig) -> None:
        super().__init__()
        self.top_p = config.top_p
        self.entropy_weight = config.entropy_weight
        self.gate = nn.Linear(nodes, EXPERTS, bias=False)
        self.noise = nn.Linear(nodes, EXPERTS, bias=False)

    def forward(self, graph: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.gate(graph)  # [B, h, n, 3]
        if self.training:
            logits = logits + torch.randn_like(logits) * (F.softplus(self.noise(graph)) + 0.01)
        probabilities = widen(logits).softmax(dim=-1)
        chosen = choose_experts(probabilities.detach(), self.top_p)
        return chosen, self.balance(probabilities, chosen)

    def balance(self, probabilities: Tensor, chosen: Tensor) -> Tensor:
        """Squared variation of the experts' importance plus a share of their entropy."""
        importance = (probabilities * chosen).sum(dim=(0, 1, 2))  # [3]
        variation = importance.var() / (importance.mean().square() + 1e-10)
        entropy = -(probabilities * (probabilities + 1e-10).log()).sum(dim=-1).mean()
        return variation + self.entropy_weight * entropy


class FilteredGraph(nn.Module):
    """A graph convolution over nodes `[B, n, d]` on the relations its router keeps; its balance."""

    regions: Tensor

    def __init__(self, config: TimeFilterConfig, *, channels: int, patches: int) -> None:
        super().__init__()
        check_heads(config.width, config.heads)
        width, nodes = config.width // config.heads, channels * patches
        self.heads = config.heads
        self.pruned = int(config.pruned_share * nodes)
        self.source = nn.Linear(width, width)
        self.target = nn.Linear(width, width)
        self.router = Router(nodes, config)
        self.value = nn.Linear(config.width, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("regions", relation_regions(channels, patches), persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = split_heads(x, self.heads)  # [B, h, n, d/h]
        graph = F.gelu(self.source(z) @ self.target(z).transpose(-1, -2))  # [B, h, n, n]
        if self.pruned:
            weakest = graph.topk(self.pruned, dim=-1, largest=False).indices
            graph = graph.scatter(-1, weakest, 0.0)
        chosen, balance = self.router(graph)
        kept = torch.eye(graph.shape[-1], dtype=torch.bool, device=x.device)  # a node keeps itself
        for expert, region in enumerate(self.regions):
            kept = kept | (chosen[..., expert, None] & region)  # [B, h, n, n]
        # A relation that is filtered out is set to 0, so its weight in the softmax is exp(0).
        weights = self.dropout((graph * kept).softmax(dim=-1))  # [B, h, n, n]
        weights = F.normalize(weights, p=1.0, dim=-1)
        return merge_heads(weights @ split_heads(self.value(x), self.heads)), balance


class FilterBlock(nn.Module):
    """Pre-norm block on `[B, n, d]`: filtered graph, then MLP, both added to their input."""

    def __init__(self, config: TimeFilterConfig, *, channels: int, patches: int) -> None:
        super().__init__()
        self.graph_norm = nn.LayerNorm(config.width)
        self.graph = FilteredGraph(config, channels=channels, patches=patches)
        self.mlp_norm = nn.LayerNorm(config.width)
        self.mlp = MLP(config.width, config.hidden, config.dropout)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mixed, balance = self.graph(self.graph_norm(x))
        x = x + mixed
        return x + self.mlp(self.mlp_norm(x)), balance


@register("TimeFilter", paper=TimeFilterConfig(), small=SMALL, reference=REFERENCE)
class TimeFilter(ForecastNetwork):
    """Patches of all channels as one graph, filtered and mixed, then a Linear per channel."""

    def __init__(self, config: TimeFilterConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        self.patch = config.patch
        self.balance_weight = config.balance_weight
        channels, patches = self.channels, -(-self.input_len // config.patch)
        self.revin = RevIN()
        self.tokens = nn.Linear(config.patch, config.width)
        self.positions = Positions(channels * patches, config.width)
        self.blocks = nn.ModuleList(
            FilterBlock(config, channels=channels, patches=patches) for _ in range(config.blocks)
        )
        self.output = nn.Linear(patches * config.width, self.horizon)
        self.balance: Tensor | None = None
        self.state_layouts()

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x, stamps)
        x, statistics = self.revin.normalise(x)
        series = F.pad(x.transpose(1, 2), (-self.input_len % self.patch, 0), mode="replicate")
        nodes = series.unflatten(-1, (-1, self.patch)).flatten(1, 2)  # [B, C*N, patch]
        z = self.positions(self.tokens(nodes))  # [B, C*N, d]
        balances = []
        for block in self.blocks:
            z, balance = block(z)
            balances.append(balance)
        self.balance = torch.stack(balances).mean() if self.training else None
        y = self.output(z.reshape(len(x), self.channels, -1))  # [B, C, H]
        return self.revin.restore(y.transpose(1, 2), statistics)

    def auxiliary_loss(self) -> Tensor:
        """The routers' balance in the last training forward; their only teacher."""
        if self.balance is None:
            return super().auxiliary_loss()
        return self.balance_weight * self.balance

    def __getstate__(self) -> dict[str, Any]:
        """Without the last balance: part of a graph cannot be copied."""
        return {**self.__dict__, "balance": None}
