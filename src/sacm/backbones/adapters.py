"""Adapters around a forecasting network; one gives it covariates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sacm.backbones.base import ForecastNetwork
from sacm.errors import ArgumentError

HIDDEN = 64  # units of an adapter's own network


class NetworkAdapter(ForecastNetwork):
    """A forecasting network around another one, of the same lengths and channels."""

    network: ForecastNetwork

    def __init__(self, network: ForecastNetwork) -> None:
        super().__init__(
            input_len=network.input_len, horizon=network.horizon, channels=network.channels
        )
        self.network = network
        self.sacm_layouts = {f"network.{k}": v for k, v in network.sacm_layouts.items()}

    @property
    def prepares(self) -> bool:
        return self.network.prepares

    def prepare(self, train_x: Tensor) -> None:
        self.network.prepare(train_x)

    def set_epoch(self, epoch: int) -> None:
        self.network.set_epoch(epoch)

    def auxiliary_loss(self) -> Tensor:
        return self.network.auxiliary_loss()


class LowerLimit(NetworkAdapter):
    """A network whose forecasts are not below a limit of each channel; in training they may be."""

    lowest: Tensor

    def __init__(self, network: ForecastNetwork, lowest: Sequence[float | None]) -> None:
        super().__init__(network)
        limits = [-math.inf if limit is None else limit for limit in lowest]
        self.register_buffer("lowest", torch.tensor(limits), persistent=False)

    def forward(self, x: Tensor, *beside: Tensor | None) -> Tensor:
        answer: Tensor = self.network(x, *beside)
        return answer if self.training else answer.maximum(self.lowest)


class CovariateAdapter(NetworkAdapter):
    """A forecasting network with covariates: `[B, L, C]` and `[B, L + H, K]` to `[B, H, C]`.

    A gated projection of the covariates is added to the input windows, and a small network of the
    known-future ones to the forecast. Both begin at zero, so a fresh adapter forecasts what its
    network does. The first `past` of the K covariates are unknown for the steps to forecast;
    `mean` and `std` `[K]` scale them.
    """

    mean: Tensor
    std: Tensor
    known: Tensor

    def __init__(
        self, network: ForecastNetwork, *, past: int, mean: Sequence[float], std: Sequence[float]
    ) -> None:
        super().__init__(network)
        self.past, self.count = past, len(mean)
        known = torch.ones(self.input_len + self.horizon, self.count)
        known[self.input_len :, :past] = 0
        for name, values in {"mean": mean, "std": std, "known": known}.items():
            self.register_buffer(name, torch.as_tensor(values).float(), persistent=False)
        self.head = None
        self.project = nn.Linear(self.count, 2 * self.channels)
        self.strength = nn.Parameter(torch.zeros(self.channels))
        if past < self.count:
            last = nn.Linear(HIDDEN, self.channels)
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            self.head = nn.Sequential(nn.Linear(self.count - past, HIDDEN), nn.GELU(), last)

    def forward(
        self, x: Tensor, stamps: Tensor | None = None, covariates: Tensor | None = None
    ) -> Tensor:
        self.check_window(x)
        expected = [len(x), self.input_len + self.horizon, self.count]
        if covariates is None or list(covariates.shape) != expected:
            shape = "none" if covariates is None else list(covariates.shape)
            raise ArgumentError(f"the network needs covariates {expected}, got {shape}.")
        # From raw units to z-scores, 0 where they are not known.
        scaled = ((covariates - self.mean) / self.std * self.known).to(x.dtype)
        content, gate = self.project(scaled[:, : self.input_len]).chunk(2, dim=-1)  # [B, L, C]
        x = x + self.strength * content * gate.sigmoid()
        answer: Tensor = self.network(x) if stamps is None else self.network(x, stamps)
        if self.head is not None:
            answer = answer + self.head(scaled[:, self.input_len :, self.past :])  # [B, H, C]
        return answer
