"""The guard of windows: limits, codes, runs and one Gaussian model, as a torch module.

A window is `mean + loadings @ factors + residual`. Residuals are autocorrelated, so an entry counts
as only `entry_weight` of an observation. With entries scaled by the root of their precision and the
loadings turned, the fit of a complete window `y` is `U (Uᵀ y)`, and the residual that an entry has
without itself in the fit is exactly that of the fit over `1 - |U_entry|²`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import inf
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.quality.checks import Levels
from sacm.quality.config import FAIL, NORMAL_MEDIAN, SMALL, SUSPECT, Fixed, GuardConfig, Kind
from sacm.quality.predictor import Rows
from sacm.quality.rules import ChannelRules, needed_channels

OTHER_VERSION = "another version of sacm saved it; fit the guard, or train the run, again"


class WindowJudgement(NamedTuple):
    """Repaired windows, flags (positions in `KINDS`) and grades, each `[B, L, C]`."""

    repaired: Tensor
    flags: Tensor
    grades: Tensor


class WindowGuard(nn.Module):
    """Finds and repairs faults inside windows `[B, L, C]`; made by `fit_window_guard`.

    Normal and suspect entries come out bit by bit as they came in, and gradients pass through them;
    repaired ones are computed in float32, in which buffers stay when a model is cast.

    Args:
        tensors: The buffers below, as `state_dict()` gives them.

    Example:
        >>> import sacm, torch
        >>> rows = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
        >>> guard = sacm.Guard(window=96).fit(rows).module()
        >>> guard(rows[:96].unsqueeze(0)).shape
        torch.Size([1, 96, 2])
    """

    mean: Tensor  # [C]
    scale: Tensor  # [C]
    basis: Tensor  # [L C, K]: the U above
    spread: Tensor  # [C]: variance of residuals
    size: Tensor  # [L, C]: usual size of leave-out residuals
    cuts: Tensor  # [2, 2, C]: for suspect and fail, of entries and roughness, in usual sizes
    limits: Tensor  # [2, C], in z-scores
    rule_range: Tensor  # [2, C]
    codes: Tensor  # [m, C]
    rests: Tensor  # [r, C], in z-scores
    run_limit: Tensor  # [C], rows
    max_change: Tensor  # [C], a row
    needs: Tensor  # [C, C]: 1 where a channel needs another one
    alone: Tensor  # [C]: channels of which only gaps are filled
    _into: Tensor  # [L C, K]: from z-scores to factors
    _out: Tensor  # [K, L C]: from factors to z-scores
    _gain: Tensor  # [L, C]: from residuals to usual sizes of leave-out residuals
    _steps: Tensor  # [6, L, C]: mean, scale, limits and cuts of entries for every step

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        for name in BUFFERS:
            if name not in tensors:
                raise ArgumentError(f"The saved guard lacks the tensor {name!r}: {OTHER_VERSION}.")
            self.register_buffer(name, tensors[name].clone(memory_format=torch.contiguous_format))
        self.length, self.channels = self.size.shape
        root = (Fixed.entry_weight / self.spread).sqrt().repeat(self.length).unsqueeze(1)
        lever = 1 - self.basis.view(*self.size.shape, -1).square().sum(-1)
        steps = torch.stack([self.mean, self.scale, *self.limits, *self.cuts[:, 0]]).unsqueeze(1)
        self.register_buffer("_into", self.basis * root, persistent=False)
        self.register_buffer("_out", (self.basis / root).T, persistent=False)
        self.register_buffer("_gain", 1 / (lever.clamp_min(SMALL) * self.size), persistent=False)
        self.register_buffer("_steps", steps.repeat(1, self.length, 1), persistent=False)
        # A stuck run repeats its value at one of the steps that are so far apart.
        self._every = max(min(int(self.run_limit.min()), self.length) - 1, 1)
        self._ruled = bool(torch.isfinite(self.rule_range).any())
        self._limits_change = bool(torch.isfinite(self.max_change).any())
        self._needing = bool(self.needs.any())
        self._left = bool(self.alone.any())

    def forward(self, x: Tensor) -> Tensor:
        """Repair what is a fail in windows `[B, L, C]`, in the units of the training rows."""
        return self.inspect(x).repaired

    def flags(self, x: Tensor) -> Tensor:
        """Which entries of windows `[B, L, C]` are repaired, bool `[B, L, C]`."""
        return self.inspect(x).grades == FAIL

    def inspect(self, x: Tensor, *, least: int = FAIL) -> WindowJudgement:
        """Windows `[B, L, C]` repaired from the grade `least` on, their flags and grades."""
        if x.shape[1:] != self.size.shape:
            asked = f"windows [B, {self.length}, {self.channels}] (batch, time, channel)"
            raise ArgumentError(f"The guard was fitted for {asked} but got {list(x.shape)}.")
        if not x.is_floating_point():
            raise ArgumentError(f"The guard needs floating-point windows, got {x.dtype}.")
        if not tracing() and len(x) > Fixed.batch:
            parts = [self.inspect(part, least=least) for part in x.split(Fixed.batch)]
            return WindowJudgement(*map(torch.cat, zip(*parts, strict=True)))
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            # Differences first: in float32 a small change at a high level would be lost.
            values = x.detach() if x.dtype == torch.float64 else x.detach().float()
            mean, scale = self._steps[:2]
            scaled = z = ((values - mean) / scale).float()
            flags = self._certain(values, z, x.dtype)
            grades = torch.zeros_like(flags)
            if _some(flags):
                bad, stuck = flags > 0, flags == Kind.STUCK
                grades = grades.masked_fill(bad, FAIL)
                # Where most channels rest for most of the window, nothing is left to repair from.
                mostly = stuck.float().mean(1, keepdim=True) > Fixed.most_doubted
                outage = stuck & mostly & ~self._few(mostly, 2)
                z = torch.where(outage, z, self._fill(z, bad))
            if self.basis.shape[1]:
                z, flags, grades = self._compare(z, flags, grades, least)
            if self._needing:
                z, flags, grades = self._obey_needs(z, flags, grades, least)
            if z is scaled:
                return WindowJudgement(x, flags, grades)
            repaired = (z * self.scale + self.mean).to(x.dtype)
        return WindowJudgement(torch.where(grades >= least, repaired, x), flags, grades)

    def judge_last(self, windows: np.ndarray, least: int) -> tuple[np.ndarray, ...]:
        """Flags, grades, repaired values and rows since the last good value, of the last rows."""
        x = torch.from_numpy(np.array(windows)).to(self.mean.device)
        repaired, flags, grades = self.inspect(x, least=least)
        since = self.length - 1 - _last(grades != FAIL)[:, -1]
        return tuple(t.cpu().numpy() for t in (flags[:, -1], grades[:, -1], repaired[:, -1], since))

    def leave_alone(self, channels: Tensor) -> WindowGuard:
        """A copy that fills only gaps in some channels, bool `[C]`."""
        return self._with(alone=self.alone | channels.to(self.alone.device))

    def rescaled(self, mean: Any, scale: Any) -> WindowGuard:
        """A copy for windows that a scaler has changed to `(x - mean) / scale`, each `[C]`."""
        centre, width = (torch.as_tensor(np.asarray(v), dtype=torch.float32) for v in (mean, scale))
        levels = {n: (getattr(self, n) - centre) / width for n in ("mean", "codes", "rule_range")}
        return self._with(**levels, scale=self.scale / width, max_change=self.max_change / width)

    def _with(self, **tensors: Tensor) -> WindowGuard:
        return WindowGuard({**self.state_dict(), **tensors}).eval()

    def _fit(self, z: Tensor, weight: Tensor) -> Tensor:
        """The expected window given z-scores `[B, L, C]`, each trusted by its weight.

        Conjugate gradients solve `(I - Uᵀ diag(doubt) U) factors = right`, `[B, K]`.
        """
        doubt, basis = 1 - weight.flatten(1), self.basis
        right = (weight * z).flatten(1) @ self._into
        tiny = torch.finfo(right.dtype).tiny
        if not tracing():  # only entries that some window doubts
            doubted = doubt.any(0).nonzero().squeeze(1)
            doubt, basis = doubt[:, doubted], basis[doubted]
        factors, residual, direction = torch.zeros_like(right), right, right
        square = (residual * residual).sum(1, keepdim=True)
        goal = SMALL**2 * square
        for turn in range(Fixed.steps):
            image = direction - (doubt * (direction @ basis.T)) @ basis
            step = square / (direction * image).sum(1, keepdim=True).clamp_min(tiny)
            factors = factors + step * direction
            residual = residual - step * image
            before, square = square, (residual * residual).sum(1, keepdim=True)
            direction = residual + square / before.clamp_min(tiny) * direction
            if turn % 2 and not _some(square > goal):
                break
        return (factors @ self._out).view_as(z)

    def _fill(self, z: Tensor, bad: Tensor) -> Tensor:
        """z-scores `[B, L, C]` with bad entries at their conditional mean."""
        if not tracing():
            rows = bad.flatten(1).any(1).nonzero().squeeze(1)
            if len(rows) < len(z):  # only the windows with a bad entry
                return z.index_copy(0, rows, self._fill(z[rows], bad[rows]))
        if not self.basis.shape[1]:  # too few windows taught a model: the last good value stays
            first = z[:, :1].masked_fill(bad[:, :1], 0.0)
            return torch.cat([first, z[:, 1:]], 1).gather(1, _last(~bad).long().clamp_min(0))
        fit = self._fit(z.masked_fill(bad, 0.0), (~bad).to(z.dtype))
        # A channel that lies above or below the fit does so where it is bad, too.
        rest, count = (z - fit).masked_fill(bad, 0.0), (~bad).sum(1, keepdim=True)
        level = rest.sum(1, keepdim=True) / count.clamp_min(1)
        return torch.where(bad, fit + level, z)

    def residuals(self, z: Tensor) -> Tensor:
        """Leave-out residuals `[B, L, C]` in usual sizes."""
        flat = z.flatten(1)
        rest = torch.addmm(flat, flat @ self._into, self._out, alpha=-1)
        return (rest.view_as(z) * self._gain).abs()

    def _certain(self, values: Tensor, z: Tensor, dtype: torch.dtype) -> Tensor:
        """Flags of missing values, gap codes, broken rules, impossible values and stuck runs."""
        flags = torch.zeros_like(z, dtype=torch.uint8)
        low, high = self._steps[2:-2]
        inside = (z >= low) & (z <= high)  # NaN is neither
        if tracing() or not inside.all():
            flags = flags.masked_fill(~inside, Kind.SPIKE).masked_fill(~z.isfinite(), Kind.MISSING)
        if self._ruled:
            ruled = (values < self.rule_range[0]) | (values > self.rule_range[1])
            flags = flags.masked_fill(ruled, Kind.RULE)
        if self.codes.shape[0]:
            grain = max(torch.finfo(dtype).eps, Fixed.grain)
            near = grain * self.codes.abs() + torch.finfo(torch.float32).tiny
            code = ((values.unsqueeze(-2) - self.codes).abs() <= near).any(-2)
            flags = flags.masked_fill(code, Kind.CODE)
        if self._limits_change:
            flags = flags.masked_fill(self._too_fast(values, flags > 0), Kind.RULE)
        tied = _some(z[:, self._every :: self._every] == z[:, self._every - 1 : -1 : self._every])
        # In half precision neighbouring values are equal by rounding: nothing is stuck.
        if tied and dtype in (torch.float32, torch.float64):
            flags = flags.masked_fill(self._stuck(z, flags > 0), Kind.STUCK)
        return flags.masked_fill(self.alone & (flags != Kind.MISSING), 0) if self._left else flags

    def _too_fast(self, values: Tensor, gone: Tensor) -> Tensor:
        """Values that differ from the last accepted one by more than `max_change` a step."""
        last, since, fast = values[:, 0], torch.full_like(values[:, 0], inf), []
        for here, measured in zip(values.unbind(1), (~gone).unbind(1), strict=True):
            since = since + 1
            fast.append(measured & ((here - last).abs() > self.max_change * since))
            taken = measured & ~fast[-1]
            last, since = torch.where(taken, here, last), torch.where(taken, 0.0, since)
        return torch.stack(fast, 1)

    def _stuck(self, z: Tensor, gone: Tensor) -> Tensor:
        """Steps that repeat their predecessor in a run of at least `run_limit` values."""
        same = (z[:, 1:] == z[:, :-1]) & ~gone[:, 1:]
        same = torch.cat([torch.zeros_like(gone[:, :1]), same], 1)
        runs = same & (_next(~same) - _last(~same) >= self.run_limit)
        if not self.rests.shape[0]:  # ONNX has no `any` of nothing
            return runs
        near = Fixed.grain * (1 + self.rests.abs())
        return runs & ~((z.unsqueeze(-2) - self.rests).abs() <= near).any(-2)

    def _compare(self, z: Tensor, flags: Tensor, grades: Tensor, least: int) -> WindowJudgement:
        """z-scores with rough channels and spikes repaired, their flags and grades."""
        residual, middle = _scores(self.residuals(z))
        suspect, fail = self._steps[-2:]
        doubt, rough = residual > suspect, (middle > self.cuts[1, 1]) & ~self.alone
        if not _some(doubt) and not _some(rough):
            return WindowJudgement(z, flags, grades)
        measured, sure = (flags == 0) & ~self.alone, residual > fail
        if _some(sure):
            sure = sure & measured & self._few(doubt, 2)
            sure = sure & self._few(sure, (1, 2))
        doubt, rough = doubt & measured, rough & self._few(rough, 1)
        grades = grades.masked_fill(doubt, SUSPECT).masked_fill(sure, FAIL)
        if _some(rough):
            usual = self.size.mean(0) / NORMAL_MEDIAN
            noise = torch.where(rough, usual.square() * (middle.square() - 1), 0.0).unsqueeze(1)
            weight = 1 / (1 + Fixed.entry_weight * noise / self.spread)
            z = z + noise / (noise + self.spread) * (self._fit(z, weight.expand(z.shape)) - z)
            noisy = rough.unsqueeze(1) & measured
            flags, grades = flags.masked_fill(noisy, Kind.BURST), grades.masked_fill(noisy, FAIL)
        repaired = sure if least == FAIL else doubt
        z = self._fill(z, repaired) if _some(repaired) else z
        return WindowJudgement(z, flags.masked_fill(doubt, Kind.SPIKE), grades)

    def _obey_needs(self, z: Tensor, flags: Tensor, grades: Tensor, least: int) -> WindowJudgement:
        """z-scores, flags and grades; a channel is no better than those that it needs."""
        graded = grades.masked_fill((flags == Kind.MISSING) | (flags == Kind.CODE), 0)
        found = ((graded >= grade).to(z.dtype) @ self.needs.T > 0 for grade in (SUSPECT, FAIL))
        worst = sum(mask.to(grades.dtype) for mask in found)
        lacking = (worst > grades) & ~self.alone
        flags, grades = flags.masked_fill(lacking, Kind.RULE), torch.where(lacking, worst, grades)
        repaired = lacking & (grades >= least)
        z = self._fill(z, repaired) if _some(repaired) else z
        return WindowJudgement(z, flags, grades)

    def _few(self, doubted: Tensor, dim: int | tuple[int, int]) -> Tensor:
        """Whether a minority is doubted: what most channels show at once is no fault."""
        if self.channels <= 2 and dim != (1, 2):
            return torch.ones_like(doubted)
        return doubted.float().mean(dim, keepdim=True) <= Fixed.most_doubted

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> WindowGuard:
        """Follow a move to another device; a cast to another precision changes nothing."""
        return super()._apply(lambda tensor: tensor.to(fn(tensor[:0]).device), recurse)


BUFFERS = tuple(name for name in WindowGuard.__annotations__ if not name.startswith("_"))


def tracing() -> bool:
    """Whether a graph is being made, so that no Python branch may depend on values."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def _some(mask: Tensor) -> bool:
    """Whether a mask holds anywhere; in a graph it may."""
    return tracing() or bool(mask.any())


def _scores(residual: Tensor) -> tuple[Tensor, Tensor]:
    """Residuals `[B, L, C]` and their size `[B, C]`, about the median, over what channels share."""
    # Three quarters of the channels exceed it: when everything moves, a move is no fault.
    middle = residual.sqrt().mean(1).square()
    shared = middle.sort(1).values[:, (middle.shape[1] - 1) // 4, None].clamp_min(1.0)
    return residual / shared.unsqueeze(1), middle / shared


def _last(flags: Tensor) -> Tensor:
    """The latest step at or before each step where `flags` holds, or -1; `[B, L, C]` int32."""
    length = flags.shape[1]
    steps = torch.arange(length, device=flags.device, dtype=torch.int32).view(1, length, 1)
    latest, reach = torch.where(flags, steps, -1), 1
    while reach < length:  # by doubling, because exported graphs have no cummax
        shifted = torch.cat([latest[:, :reach], latest[:, :-reach]], 1)
        latest = torch.maximum(latest, shifted)
        reach *= 2
    return latest


def _next(flags: Tensor) -> Tensor:
    """The first step at or after each step where `flags` holds, or L; `[B, L, C]`."""
    return flags.shape[1] - 1 - _last(flags.flip(1)).flip(1)


@torch.no_grad()
def fit_window_guard(
    repaired: np.ndarray,
    length: int,
    rows: Rows,
    rules: Sequence[ChannelRules],
    levels: Levels,
    config: GuardConfig,
) -> WindowGuard:
    """Learn from repaired training rows `[T, C]` what windows look like; few teach limits alone."""
    mean, scale = repaired.mean(0), repaired.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (repaired - mean) / scale
    early = 2 * (np.arange(rows.count) - rows.first) < rows.stop - rows.first
    (low, high), known = _limits(z, config), _limits(z[early], config)
    # A channel that leaves the limits of its first half grows: no value is impossible.
    beyond = ((z < known[0]) | (z > known[1]))[~early]
    grows = beyond.sum(0) > config.wrong_share * len(beyond)
    ranges, channels = np.array([rule.range for rule in rules]).T, len(rules)
    free = np.isfinite(ranges) | grows
    # In a window that is mostly one run nothing tells what comes next, unless a rule does.
    runs = np.where(levels.run_limit > length // 2, length + 1, levels.run_limit)
    rests = list(levels.rests)
    for channel, rule in enumerate(rules):
        if rule.longest_rest is not None:
            rests[channel], runs[channel] = [], int(rule.longest_rest) + 1
    arrays = {
        "mean": mean,
        "scale": scale,
        "limits": np.where(free, [[-inf], [inf]], [low, high]),
        "rule_range": ranges,
        "codes": _padded([rule.codes or c for c, rule in zip(levels.codes, rules, strict=True)]),
        "rests": (_padded(rests) - mean) / scale,
        "max_change": [rule.max_change for rule in rules],
        "needs": needed_channels(rules),
        "basis": np.zeros((length * channels, 0)),
        "spread": np.ones(channels),
        "size": np.ones((length, channels)),
        "cuts": np.full((2, 2, channels), inf),
    }
    tensors = {name: torch.as_tensor(np.asarray(a)).float() for name, a in arrays.items()}
    tensors["alone"] = torch.tensor([rule.leave_alone for rule in rules])
    tensors["run_limit"] = torch.tensor(runs)
    starts = np.concatenate([np.arange(s.start, s.stop - length + 1) for s in rows.segments])
    if rows.count < Fixed.fewest_windows * length or len(starts) < 2:
        return WindowGuard(tensors).eval()
    most = max(Fixed.fewest_windows, Fixed.most_entries // (length * channels))
    stride = max(1, len(starts) // min(Fixed.most_windows, most))
    scaled = ((torch.from_numpy(repaired) - tensors["mean"]) / tensors["scale"]).float()
    windows = scaled[starts[::stride, None] + np.arange(length)]  # [N, L, C]
    guard = WindowGuard(tensors | _gaussian(windows))
    sample = windows[:: max(1, 2 * len(windows) // Fixed.most_windows)]
    residual = torch.cat([guard.residuals(part) for part in sample.split(Fixed.batch)])
    size = residual.median(0).values.clamp_min(SMALL)
    residual, middle = _scores(residual / size)
    single = _upper(residual.flatten(0, 1), config.false_rate)
    cuts = torch.stack([single, _upper(middle, config.suspect_rate)])
    factors = torch.tensor([config.online_suspect, config.online_fail]).view(2, 1, 1)
    return guard._with(size=size, cuts=cuts * factors)


def _limits(z: np.ndarray, config: GuardConfig) -> tuple[np.ndarray, np.ndarray]:
    """What new values must lie between, `[C]` each: the range of rows `[T, C]`, and some room."""
    room = np.maximum(np.ptp(z, 0), 1.0) * config.online_range
    return z.min(0) - room, z.max(0) + room


def _padded(values: Sequence[Any]) -> np.ndarray:
    """Some numbers for each of C channels as `[n, C]`, NaN where there are fewer."""
    return np.array(list(zip_longest(*values, fillvalue=np.nan)), float).reshape(-1, len(values))


def _upper(values: Tensor, share: float) -> Tensor:
    """The value `[C]` that a share of values `[N, C]` exceeds."""
    ordered = values.sort(0, descending=True).values
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _gaussian(windows: Tensor) -> dict[str, Tensor]:
    """Buffers of the model of windows `[N, L, C]`: its leading directions, and the rest."""
    flat = windows.flatten(1)
    count = max(1, min(Fixed.directions, len(flat) - 1, flat.shape[1]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        _, values, vectors = torch.svd_lowrank(flat, min(count + count // 4, *flat.shape), niter=8)
    vectors, variances = vectors[:, :count], values[:count].square() / len(flat)
    residual = (flat - (flat @ vectors) @ vectors.T).view_as(windows)
    power = residual.square().mean((0, 1)).clamp_min(SMALL)
    root = (Fixed.entry_weight / power).sqrt().repeat(windows.shape[1])
    # Directions are rotated so that complete windows need no linear solve.
    scaled = (vectors * variances.sqrt() * root[:, None]).double()
    precision = torch.eye(count, dtype=torch.float64) + scaled.T @ scaled
    factor = torch.linalg.cholesky(precision)
    basis = torch.linalg.solve_triangular(factor, scaled.T, upper=False).T
    return {"spread": power, "basis": basis.to(flat.dtype)}
