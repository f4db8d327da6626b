"""WPMixer: wavelet coefficients, each series of them forecast by its own patch mixer.

Differs from the publication's code: the first H values of the inverse transform are kept, not the
last, so that odd horizons are not shifted by one step. `level=0` leaves the wavelet out, as the
network of SACM's authors does: one branch mixes patches of the window itself.

Dropout sites, per branch: the embedding `[B, C, N, d]`; per mixer the hidden layers of tokens
`[B, C, d, 5N]` and features `[B, C, N, 5d]`, and one module called after each, `[B, C, N, d]`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sacm.backbones.base import ForecastNetwork
from sacm.backbones.blocks.embedding import count_patches, cut_patches
from sacm.backbones.blocks.normalisation import RevIN, full_precision
from sacm.backbones.blocks.transformer import MLP
from sacm.backbones.registry import register
from sacm.errors import ArgumentError

REFERENCE = "Murad et al., AAAI 2025, arXiv:2412.17176"


@dataclass(frozen=True)
class WPMixerConfig:
    """Sizes of the paper's runs."""

    wavelet: str = "db2"
    level: int = 1
    width: int = 64
    patch: int = 16
    stride: int = 8
    token_factor: int = 5
    feature_factor: int = 5
    dropout: float = 0.1


SMALL = WPMixerConfig(width=32, token_factor=3, feature_factor=3)


class Wavelet(nn.Module):
    """Discrete wavelet transform along the last axis with zero extension, and its inverse."""

    analysis: Tensor
    synthesis: Tensor

    def __init__(self, name: str, level: int) -> None:
        super().__init__()
        import pywt  # here, so that no other architecture needs it

        if name not in pywt.wavelist(kind="discrete"):
            raise ArgumentError(
                f"WPMixer: {name!r} is no discrete wavelet of PyWavelets; try 'db2' or 'haar'."
            )
        wavelet = pywt.Wavelet(name)
        analysis = torch.tensor([wavelet.dec_lo, wavelet.dec_hi]).flip(1)[:, None]  # [2, 1, F]
        synthesis = torch.tensor([wavelet.rec_lo, wavelet.rec_hi])[:, None]  # [2, 1, F]
        self.taps = wavelet.dec_len
        self.level = level
        self.register_buffer("analysis", analysis, persistent=False)
        self.register_buffer("synthesis", synthesis, persistent=False)

    def split(self, x: Tensor) -> list[Tensor]:
        """`[B, C, T]` to coefficients `[B, C, n_i]`: approximation, then details from coarsest."""
        details: list[Tensor] = []
        for _ in range(self.level):
            steps = x.shape[-1]
            count = (steps + self.taps - 1) // 2
            padded = F.pad(x, (self.taps - 2, 2 * count - steps)).flatten(0, 1)[:, None]
            with full_precision(x):
                coefficients = F.conv1d(padded, self.analysis, stride=2)  # [B*C, 2, n]
            x, detail = coefficients.unflatten(0, x.shape[:2]).unbind(2)  # [B, C, n]
            details.insert(0, detail)
        return [x, *details]

    def join(self, series: list[Tensor]) -> Tensor:
        """Coefficient series `[B, C, n_i]` to values, one more than were split if those are odd."""
        x, *details = series
        for detail in details:
            pair = torch.stack((x[..., : detail.shape[-1]], detail), dim=2)  # [B, C, 2, n]
            with full_precision(x):
                values = F.conv_transpose1d(pair.flatten(0, 1), self.synthesis, stride=2)
            margin = self.taps - 2
            values = values[:, 0, margin : values.shape[-1] - margin]  # [B*C, T]
            x = values.unflatten(0, detail.shape[:2])  # [B, C, T]
        return x


class Mixer(nn.Module):
    """An MLP across patches, then one across features with a residual: `[B, C, N, d]` to same."""

    def __init__(self, config: WPMixerConfig, *, channels: int, patches: int) -> None:
        super().__init__()
        self.token_norm = nn.BatchNorm2d(channels)
        self.token_mlp = MLP(patches, config.token_factor * patches, config.dropout)
        self.feature_norm = nn.BatchNorm2d(channels)
        self.feature_mlp = MLP(config.width, config.feature_factor * config.width, config.dropout)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.token_mlp(self.token_norm(x).transpose(2, 3)).transpose(2, 3)
        x = self.feature_norm(self.dropout(x))
        return x + self.dropout(self.feature_mlp(x))


class Branch(nn.Module):
    """Coefficients of the window `[B, C, n]` to those of the horizon `[B, C, m]`."""

    def __init__(self, config: WPMixerConfig, past: int, future: int, *, channels: int) -> None:
        super().__init__()
        patches = count_patches(past, patch=config.patch, stride=config.stride)
        if patches < 1:
            raise ArgumentError(
                f"WPMixer: a coefficient series of {past} values is too short for patches of "
                f"{config.patch} every {config.stride}: use a longer input_len or a smaller patch."
            )
        self.patch, self.stride = config.patch, config.stride
        self.revin = RevIN(channels)
        self.patch_norm = nn.BatchNorm2d(channels)
        self.tokens = nn.Linear(config.patch, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.first_mixer = Mixer(config, channels=channels, patches=patches)
        self.second_mixer = Mixer(config, channels=channels, patches=patches)
        self.output_norm = nn.BatchNorm2d(channels)
        self.output = nn.Linear(patches * config.width, future)

    def forward(self, x: Tensor) -> Tensor:
        x, statistics = self.revin.normalise(x.transpose(1, 2))  # [B, n, C]
        patches = cut_patches(x.transpose(1, 2), patch=self.patch, stride=self.stride)
        z = self.dropout(self.tokens(self.patch_norm(patches)))  # [B, C, N, d]
        z = self.first_mixer(z)
        z = z + self.second_mixer(z)
        y = self.output(self.output_norm(z).flatten(2))  # [B, C, m]
        return self.revin.restore(y.transpose(1, 2), statistics).transpose(1, 2)


@register("WPMixer", paper=WPMixerConfig(), small=SMALL, reference=REFERENCE)
class WPMixer(ForecastNetwork):
    """Split into wavelet coefficients, forecast each series, join the forecasts."""

    def __init__(self, config: WPMixerConfig, **sizes: int) -> None:
        super().__init__(**sizes)
        self.revin = RevIN(self.channels)
        self.wavelet = Wavelet(config.wavelet, config.level)
        zeros = (torch.zeros(1, 1, steps) for steps in (self.input_len, self.horizon))
        lengths = zip(*map(self.wavelet.split, zeros), strict=True)
        self.branches = nn.ModuleList(
            Branch(config, past.shape[-1], future.shape[-1], channels=self.channels)
            for past, future in lengths
        )
        self.state_layouts()

    def forward(self, x: Tensor, stamps: Tensor | None = None) -> Tensor:
        self.check_window(x, stamps)
        x, statistics = self.revin.normalise(x)
        past = self.wavelet.split(x.transpose(1, 2))  # [B, C, n_i] each
        future = [branch(series) for branch, series in zip(self.branches, past, strict=True)]
        y = self.wavelet.join(future)[..., : self.horizon]  # [B, C, H]
        return self.revin.restore(y.transpose(1, 2), statistics)
