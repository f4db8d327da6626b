"""Faults of windows `[B, L, C]` of z-scores, each with a severity between 0 and 1.

They are those of SensorFault-Bench (arXiv:2605.10822). A fault hits `1 + floor(s (k - 1))` random
channels with `k = ceil(C / 2)`, unless it says otherwise.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Generator, Tensor

from sacm.errors import ArgumentError
from sacm_lab.robust.faults import FAULTS
from sacm_lab.robust.faults.fault import Channel, WindowFault, series_parts


def draw_channels(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """Which channels a fault hits, bool [B, 1, C]."""
    most = math.ceil(x.shape[2] / 2)
    count = torch.where(s >= 1, most, 1 + (s * (most - 1)).long())
    rank = torch.rand(len(x), x.shape[2], generator=generator).argsort(1).argsort(1)
    return (rank < count.unsqueeze(1)).unsqueeze(1)


def draw_start(steps: Tensor, length: int, generator: Generator) -> Tensor:
    """First steps of segments of `steps` steps, uniform from 1 to where they still fit."""
    places = (length - steps).clamp_min(1)
    return 1 + (torch.rand(steps.shape, generator=generator) * places).long().clamp_max(places - 1)


def _wide(s: Tensor) -> Tensor:
    """Severities [B] as [B, 1, 1]."""
    return s.view(-1, 1, 1)


def _ramp(x: Tensor) -> Tensor:
    """From 0 at the first step to 1 at the last, [1, L, 1]."""
    return torch.linspace(0, 1, x.shape[1]).view(1, -1, 1)


def _segment_of(x: Tensor, start: Tensor, steps: Tensor) -> Tensor:
    """Steps from `start` on, `steps` of them, bool; both [B, 1 or C] to [B, L, 1 or C]."""
    position = torch.arange(x.shape[1]).view(1, -1, 1)
    return (position >= start.unsqueeze(1)) & (position < (start + steps).unsqueeze(1))


def _hold(x: Tensor, start: Tensor, where: Tensor) -> Tensor:
    """The value before `start` [B, 1 or C] wherever `where` holds."""
    before = (start - 1).clamp_min(0).expand(len(x), x.shape[2]).unsqueeze(1)
    return torch.where(where, x.gather(1, before), x)


def add_drift(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """A constant of 0.75 s is added."""
    return torch.where(draw_channels(x, s, generator), x + 0.75 * _wide(s), x)


def attenuate(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """Values shrink by the factor 1 - 0.75 s."""
    return torch.where(draw_channels(x, s, generator), x * (1 - 0.75 * _wide(s)), x)


def add_noise(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """White noise of deviation s is added."""
    hit = draw_channels(x, s, generator)
    return torch.where(hit, x + _wide(s) * torch.randn(x.shape, generator=generator), x)


def add_spike(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """One step of each channel after the first rises by 7.5 s."""
    hit = draw_channels(x, s, generator)
    one = torch.ones(len(x), x.shape[2], dtype=torch.long)
    at = _segment_of(x, draw_start(one, x.shape[1], generator), one)
    return torch.where(hit & at, x + 7.5 * _wide(s), x)


def stick(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """Each channel holds a value for ceil(s (L - 1)) steps, each from its own start."""
    hit = draw_channels(x, s, generator)
    steps = _steps(s, 1.0, x).unsqueeze(1).expand(len(x), x.shape[2])
    start = draw_start(steps, x.shape[1], generator)
    return _hold(x, start, hit & _segment_of(x, start, steps))


def lose_data(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """One gap of ceil(0.5 s (L - 1)) steps in all channels, filled with the last value."""
    steps = _steps(s, 0.5, x).unsqueeze(1)
    start = draw_start(steps, x.shape[1], generator)
    return _hold(x, start, _segment_of(x, start, steps))


def _steps(s: Tensor, share: float, x: Tensor) -> Tensor:
    """How many steps a share of the severity takes up, at most all but the first."""
    return (share * s.double() * (x.shape[1] - 1)).ceil().long()


def stretch_time(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """Half of the window is read at the speed 1 / (1 + 4 s)."""
    return _warp(x, s, 1 / (1 + 4 * s), generator)


def compress_time(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """Half of the window is read at the speed 1 / (1 - 0.9 s); beyond its end the last value."""
    return _warp(x, s, 1 / (1 - 0.9 * s), generator)


def _warp(x: Tensor, s: Tensor, speed: Tensor, generator: Generator) -> Tensor:
    """Read a segment of half the window at another speed, by linear interpolation."""
    count, length, channels = x.shape
    hit = draw_channels(x, s, generator)
    steps = torch.full((count, 1), math.ceil(length / 2))
    start = draw_start(steps, length, generator)
    since = torch.arange(length) - start + 1  # [B, L]: 1 at the start
    time = (start - 1 + since * speed.unsqueeze(1)).clamp(0, length - 1)
    below = time.floor().long().clamp_max(max(0, length - 2))
    share = (time - below).unsqueeze(-1)
    index = below.unsqueeze(-1).expand(count, length, channels)
    read = x.gather(1, index) * (1 - share) + x.gather(1, index + 1) * share
    return torch.where(hit & _segment_of(x, start, steps), read, x)


def add_linear_drift(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """A ramp from 0 to s is added."""
    return torch.where(draw_channels(x, s, generator), x + _wide(s) * _ramp(x), x)


def add_nonlinear_drift(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """A half straight, half square ramp from 0 to s is added."""
    ramp = 0.5 * _ramp(x) + 0.5 * _ramp(x).square()
    return torch.where(draw_channels(x, s, generator), x + _wide(s) * ramp, x)


def scale_up(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """Values grow by the factor 1 + s."""
    return torch.where(draw_channels(x, s, generator), x * (1 + _wide(s)), x)


def scale_over_time(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """Values grow by a factor that rises from 1 to 1 + s."""
    return torch.where(draw_channels(x, s, generator), x * (1 + _wide(s) * _ramp(x)), x)


def clip(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """Values are cut off at ±(3 - 2 s)."""
    limit = 3 - 2 * _wide(s)
    return torch.where(draw_channels(x, s, generator), x.clamp(-limit, limit), x)


def compress_extremes(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """The part of a value beyond ±(3 - 2 s) is multiplied by 1 - 0.4 s."""
    limit = 3 - 2 * _wide(s)
    inside = x.clamp(-limit, limit)
    return torch.where(
        draw_channels(x, s, generator), inside + (x - inside) * (1 - 0.4 * _wide(s)), x
    )


def lose_packets(x: Tensor, s: Tensor, generator: Generator) -> Tensor:
    """Bursts of lost steps hold the last value: they begin with 0.25 s, go on with 0.9 s.

    At least one step of each channel is lost.
    """
    count, length, channels = x.shape
    hit = draw_channels(x, s, generator).squeeze(1)
    sure = torch.randint(1, length, (count, channels), generator=generator)
    chance = torch.rand(x.shape, generator=generator)
    lost = torch.zeros(count, channels, dtype=torch.bool)
    steps = [x[:, 0]]
    for t in range(1, length):
        limit = torch.where(lost, 0.9 * s.unsqueeze(1), 0.25 * s.unsqueeze(1))
        lost = hit & ((sure == t) | (chance[:, t] < limit))
        steps.append(torch.where(lost, steps[-1], x[:, t]))
    return torch.stack(steps, 1)


WINDOWS: dict[str, WindowFault] = {
    "drift": add_drift,
    "attenuation": attenuate,
    "noise": add_noise,
    "spike": add_spike,
    "time_stretch": stretch_time,
    "time_compress": compress_time,
    "stuck_sensor": stick,
    "missing_data": lose_data,
    "linear_drift": add_linear_drift,
    "nonlinear_drift": add_nonlinear_drift,
    "scaling": scale_up,
    "time_varying_scaling": scale_over_time,
    "trimming_constant": clip,
    "trimming_varying": compress_extremes,
    "packet_loss": lose_packets,
}


def corrupt_windows(x: Tensor, kind: str, severity: Tensor | float, *, seed: int = 0) -> Tensor:
    """Put one fault into each window.

    Args:
        x: Windows of z-scores `[B, L, C]`, which stay unchanged.
        kind: A fault. One that is defined for series only corrupts a share `severity` of the steps
            of every channel.
        severity: `[B]` or one number, between 0 and 1.
        seed: Of the channels, positions and noise.

    Example:
        >>> x = torch.randn(4, 96, 3)
        >>> torch.equal(corrupt_windows(x, "stuck", 0.5, seed=1), x)
        False
    """
    fault = FAULTS.get(kind)
    if x.dim() != 3 or x.shape[1] < 2:
        raise ArgumentError(f"Windows must be [B, L, C] with L of 2 or more, got {list(x.shape)}.")
    s = torch.as_tensor(severity, dtype=torch.float32).expand(len(x)).cpu()
    if not bool(((s >= 0) & (s <= 1)).all()):
        raise ArgumentError("severity must lie between 0 and 1.")
    original = x.detach().float().cpu()
    if fault.windows is not None:
        result = fault.windows(original, s, Generator().manual_seed(seed))
    else:
        result = _corrupt_each(original, kind, s, seed)
    return result.to(device=x.device, dtype=x.dtype)


def _corrupt_each(x: Tensor, kind: str, severity: Tensor, seed: int) -> Tensor:
    """Treat every channel of every window as a short series whose deviation is 1."""
    parts = series_parts(kind)
    random = np.random.default_rng(seed)
    result = x.double().numpy().copy()
    for window, ratio in zip(result, severity.tolist(), strict=True):
        for c in range(window.shape[1]):
            kinds = np.zeros(len(window), np.uint8)
            channel = Channel(window[:, c], kinds, 0.0, 1.0, mixed=len(parts) > 1)
            for code, fault in enumerate(parts.values(), 1):
                fault(channel, ratio / len(parts), code, random)
    return torch.from_numpy(result).float()
