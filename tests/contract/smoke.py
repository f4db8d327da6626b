"""Three small tasks that every network of the kind must learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from sacm.backbones.base import Backbone, DetectorNetwork

BATCH = 32


def batches(count: int, *, steps: int, seed: int = 0) -> Iterator[Tensor]:
    """Index batches of 32, reshuffled each time all `count` have been seen."""
    generator = torch.Generator().manual_seed(seed)
    done = 0
    while True:
        for indices in torch.randperm(count, generator=generator).split(BATCH):
            if done == steps:
                return
            yield indices
            done += 1


def fit(
    model: Backbone,
    loss: Callable[[Tensor], Tensor],
    *,
    count: int,
    steps: int,
    reached: Callable[[], bool],
    check_every: int = 25,
    learning_rate: float = 1e-3,
) -> bool:
    """Adam for at most `steps`, stopping once `reached`."""
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for step, indices in enumerate(batches(count, steps=steps), start=1):
        model.train()
        optimizer.zero_grad()
        (loss(indices) + model.auxiliary_loss()).backward()
        optimizer.step()
        if step % check_every == 0 and reached():
            return True
    return reached()


def two_tone_series(steps: int) -> Tensor:
    """Three channels of two sines each, z-scored, `[T, 3]`."""
    time = torch.arange(steps)[:, None]
    first, second = torch.tensor([24.0, 16.0, 12.0]), torch.tensor([8.0, 5.0, 7.0])
    series = torch.sin(2 * math.pi * time / first)
    series = series + 0.5 * torch.sin(2 * math.pi * time / second + 1)
    return (series - series.mean(dim=0)) / series.std(dim=0, correction=0)


def forecasting_windows(length: int, horizon: int) -> tuple[Tensor, Tensor]:
    """64 windows every 4 steps: inputs `[64, L, 3]` and targets `[64, H, 3]`."""
    series = two_tone_series(63 * 4 + length + horizon)
    cut = series.unfold(0, length + horizon, 4).transpose(1, 2)  # [64, L + H, 3]
    return cut[:, :length], cut[:, length:]


def two_classes(count: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """3 or 6 cycles in 64 steps at random phase, `[N, 64, 2]`, and the label."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 2
    phase = 2 * math.pi * torch.rand(count, 1, generator=generator)
    cycles = torch.where(labels == 0, 3.0, 6.0)[:, None]
    angle = 2 * math.pi * cycles * torch.arange(64) / 64 + phase  # [N, 64]
    clean = torch.stack((angle.sin(), 0.5 * angle.cos()), dim=-1)  # [N, 64, 2]
    return clean + 0.3 * torch.randn(clean.shape, generator=generator), labels


def three_sines(steps: int, *, seed: int) -> Tensor:
    """Sines of period 24, 16, 12 with noise of 0.1, `[T, 3]`."""
    generator = torch.Generator().manual_seed(seed)
    time = torch.arange(steps)[:, None]
    clean = torch.sin(2 * math.pi * time / torch.tensor([24.0, 16.0, 12.0]))
    return clean + 0.1 * torch.randn(clean.shape, generator=generator)


def with_anomalies(series: Tensor, *, frozen: bool) -> tuple[Tensor, Tensor]:
    """Four shifts of +-2 for 8 steps and two frozen stretches of 20, far apart; labels `[T]`."""
    series, labels = series.clone(), torch.zeros(len(series), dtype=torch.bool)
    for start, shift in ((80, 2.0), (240, -2.0), (560, 2.0), (720, -2.0)):
        series[start : start + 8] += shift
        labels[start : start + 8] = True
    if frozen:
        for start in (400, 880):
            series[start : start + 20] = series[start]
            labels[start : start + 20] = True
    return series, labels


def scores_of(model: DetectorNetwork, series: Tensor, length: int) -> Tensor:
    """Per-step scores `[T]`: the mean over the windows, every 4 steps, that cover a step."""
    model.eval()
    cut = series.unfold(0, length, 4).transpose(1, 2)  # [W, L, C]
    with torch.no_grad():
        scores = torch.cat([model.anomaly_scores(part) for part in cut.split(64)])  # [W, L]
    steps = 4 * torch.arange(len(cut))[:, None] + torch.arange(length)  # [W, L]
    total = torch.zeros(len(series)).index_add(0, steps.flatten(), scores.flatten())
    return total / steps.flatten().bincount(minlength=len(series))


def area_under_roc(scores: Tensor, labels: Tensor) -> float:
    """How often a labelled step scores above an unlabelled one."""
    positive, negative = scores[labels], scores[~labels]
    above = (positive[:, None] > negative).double() + 0.5 * (positive[:, None] == negative).double()
    return float(above.mean())


def accuracy(model: Backbone, x: Tensor, labels: Tensor) -> float:
    model.eval()
    with torch.no_grad():
        return float((model(x).argmax(dim=1) == labels).double().mean())


def cross_entropy(model: Backbone, x: Tensor, labels: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda indices: F.cross_entropy(model(x[indices]), labels[indices])
