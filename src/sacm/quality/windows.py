"""The guard of windows: limits, codes, runs and one Gaussian model, as a torch module.

A window is `mean + loadings @ factors + residual`; residuals of a channel have one variance, and as
they are autocorrelated each entry counts as only `entry_weight` of an observation. With entries
scaled by the root of their precision and the loadings turned, the fit of a complete window `y` is
`U (Uᵀ y)`. What the fit would be without one entry or a block of entries follows exactly from the
same `U`: the leave-out residual of a block `b` is `(I - U_b U_bᵀ)⁻¹ (y - U Uᵀ y)_b`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.quality import checks
from sacm.quality.config import (
    BURST,
    CODE,
    FAIL,
    MISSING,
    MODELS,
    NORMAL_MEDIAN,
    RULE,
    SMALL,
    SPIKE,
    STUCK,
    SUSPECT,
    GuardConfig,
)
from sacm.quality.predictor import Rows, find_segments
from sacm.quality.repair import INTERVAL, RepairModel
from sacm.quality.rules import ChannelRules

BLOCK = MODELS.block
SHORTEST_WINDOW = MODELS.shortest_window
STEPS = tuple(2**k for k in range(6))
"""Steps since the last good value, for which the error of a repair is measured."""


class WindowJudgement(NamedTuple):
    """Repaired windows, flags (positions in `KINDS`) and grades, each `[B, L, C]`."""

    repaired: Tensor
    flags: Tensor
    grades: Tensor


class WindowGuard(nn.Module):
    """Finds and repairs faults inside windows `[B, L, C]`; made by `fit_window_guard`.

    It looks at nothing but the window. Normal and suspect entries come out bit by bit as they came
    in, whatever their precision; repaired ones are computed in float32. Gradients pass through
    entries that are not repaired. Buffers stay in float32 when a model that holds the guard is
    cast, and move with it between devices.

    Buffers (C channels, L steps): mean, scale `[C]`; basis `[L C, K]`, the `U` above; root, spread,
    carry `[C]`: root of an entry's precision, variance and lag-1 correlation of residuals; lever
    `[L, C]` and inverse `[n, C, 8, 8]`: the matrices of leave-out residuals; size `[L, C]` and
    block_size `[n, C]`: their usual size; cuts `[3, C]`: of single entries, blocks and roughness,
    in usual sizes; limits, rule_range `[2, C]`; codes `[m, C]`; rests `[r, C]`; run_limit `[C]`;
    max_change `[C]`: a step; alone `[C]`: channels of which only gaps are filled; errors `[6, C]`:
    deviation of repairs by steps since the last good value.

    Example:
        >>> import torch
        >>> rows = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0))
        >>> guard = fit_window_guard(rows.numpy(), length=96)
        >>> guard(rows[:96].unsqueeze(0)).shape
        torch.Size([1, 96, 2])
    """

    mean: Tensor
    scale: Tensor
    basis: Tensor
    root: Tensor
    spread: Tensor
    carry: Tensor
    lever: Tensor
    inverse: Tensor
    size: Tensor
    block_size: Tensor
    cuts: Tensor
    limits: Tensor
    rule_range: Tensor
    codes: Tensor
    rests: Tensor
    run_limit: Tensor
    max_change: Tensor
    alone: Tensor
    errors: Tensor

    def __init__(self, length: int, suspect: float, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        missing = [name for name in BUFFERS if name not in tensors]
        if missing:
            raise ArgumentError(f"The saved guard lacks the tensor {missing[0]!r}.")
        self.length, self.suspect = length, suspect
        self.channels = len(tensors["mean"])
        for name in BUFFERS:
            self.register_buffer(name, tensors[name].clone(memory_format=torch.contiguous_format))
        self._limits_change = bool(torch.isfinite(self.max_change).any())

    def forward(self, x: Tensor) -> Tensor:
        """Repair what is a fail in windows `[B, L, C]`, in the units of the training rows.

        Raises:
            ArgumentError: The windows have another length or other channels.
        """
        self.check(x)
        with torch.no_grad():
            found = self._judge(x)
        return torch.where(found.grades == FAIL, found.repaired, x)

    @torch.no_grad()
    def flags(self, x: Tensor) -> Tensor:
        """Which entries of windows `[B, L, C]` are repaired, bool `[B, L, C]`."""
        self.check(x)
        return self._judge(x).grades == FAIL

    @torch.no_grad()
    def inspect(self, x: Tensor) -> WindowJudgement:
        """Repaired windows, flags and grades of windows `[B, L, C]`."""
        self.check(x)
        found = self._judge(x)
        return found._replace(repaired=torch.where(found.grades == FAIL, found.repaired, x))

    def check(self, x: Tensor) -> None:
        """Refuse anything but windows `[B, length, channels]` of floating-point numbers."""
        if x.dim() != 3 or x.shape[1] != self.length or x.shape[2] != self.channels:
            raise ArgumentError(
                f"The guard was fitted for windows [B, {self.length}, {self.channels}] (batch, "
                f"time, channel) but got {list(x.shape)}."
            )
        if not x.is_floating_point():
            raise ArgumentError(f"The guard needs floating-point windows, got {x.dtype}.")

    def leave_alone(self, channels: Tensor) -> WindowGuard:
        """A copy that fills only gaps in some channels, bool `[C]`."""
        tensors = {name: getattr(self, name) for name in BUFFERS}
        tensors["alone"] = self.alone | channels.to(self.alone.device)
        return WindowGuard(self.length, self.suspect, tensors).eval()

    def rescaled(self, mean: Any, scale: Any) -> WindowGuard:
        """A copy for windows that a scaler has changed to `(x - mean) / scale`, each `[C]`."""
        centre, width = (torch.as_tensor(np.asarray(v), dtype=torch.float32) for v in (mean, scale))
        tensors = {name: getattr(self, name) for name in BUFFERS}
        tensors["mean"] = (self.mean - centre) / width
        tensors["scale"] = self.scale / width
        for name in ("codes", "rule_range"):
            tensors[name] = (tensors[name] - centre) / width
        tensors["max_change"] = self.max_change / width
        return WindowGuard(self.length, self.suspect, tensors).eval()

    def config(self) -> dict[str, Any]:
        """What `load` needs besides the tensors of `state_dict()`."""
        return {"length": self.length, "suspect": self.suspect}

    @classmethod
    def load(cls, config: Mapping[str, Any], state: Mapping[str, Tensor]) -> WindowGuard:
        """Rebuild a guard from `config()` and `state_dict()`."""
        return cls(int(config["length"]), float(config["suspect"]), state).eval()

    def fit(self, z: Tensor, weight: Tensor | None = None) -> Tensor:
        """The expected window given z-scores `[B, L, C]`, each trusted by its weight."""
        centred = (z * self.root).flatten(1)
        if weight is None:
            factors = centred @ self.basis
        else:
            flat = weight.flatten(1)
            factors = self._solve((flat * centred) @ self.basis, 1 - flat)
        return (factors @ self.basis.T).view_as(z) / self.root

    def _solve(self, right: Tensor, doubt: Tensor) -> Tensor:
        """Conjugate gradients for `(I - Uᵀ diag(doubt) U) g = right`, `[B, K]`."""
        tiny, every = torch.finfo(right.dtype).tiny, 4
        factors, residual, direction = torch.zeros_like(right), right, right
        square = (residual * residual).sum(1, keepdim=True)
        goal = SMALL**2 * square
        for turn in range(MODELS.turns):
            image = direction - (doubt * (direction @ self.basis.T)) @ self.basis
            step = square / (direction * image).sum(1, keepdim=True).clamp_min(tiny)
            factors = factors + step * direction
            residual = residual - step * image
            before, square = square, (residual * residual).sum(1, keepdim=True)
            direction = residual + square / before.clamp_min(tiny) * direction
            if not tracing() and turn % every == every - 1 and bool((square <= goal).all()):
                break
        return factors

    def _fill(self, z: Tensor, bad: Tensor) -> Tensor:
        """z-scores `[B, L, C]` with bad entries at their conditional mean."""

        def fill(z: Tensor, bad: Tensor) -> Tensor:
            known = torch.where(bad, 0.0, z)
            fit = self.fit(known, (~bad).to(z.dtype))
            return torch.where(
                bad, fit + _bridge(torch.where(bad, 0.0, z - fit), bad, self.carry), z
            )

        return _on_windows(bad.flatten(1).any(1), fill, z, bad)

    def residuals(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Leave-out residuals in usual sizes: of entries `[B, L, C]`, of blocks `[B, n, C]`."""
        left = z - self.fit(z)
        single = (left / self.lever).abs() / self.size
        count = self.inverse.shape[0]
        blocks = left[:, self.length - count * BLOCK :]
        blocks = blocks.reshape(z.shape[0], count, BLOCK, self.channels).transpose(2, 3)
        out = torch.einsum("ncij,bncj->bnci", self.inverse, blocks)
        return single, out.square().mean(-1).sqrt() / self.block_size

    def _judge(self, x: Tensor) -> WindowJudgement:
        """All checks and the repair, in float32 whatever autocast says."""
        if not tracing() and len(x) > MODELS.batch:
            parts = [self._judge(part) for part in x.split(MODELS.batch)]
            return WindowJudgement(*map(torch.cat, zip(*parts, strict=True)))
        with torch.autocast(x.device.type, enabled=False):
            return self._judge_in_float32(x)

    def _judge_in_float32(self, x: Tensor) -> WindowJudgement:
        # Differences first: in float32 a small change at a high level would be lost.
        values = x.detach() if x.dtype == torch.float64 else x.detach().float()
        z = ((values - self.mean) / self.scale).float()
        flags = self._certain(values, z, x.dtype)
        judged = ~self.alone | (flags == MISSING)
        flags = torch.where(judged, flags, 0)
        z = self._fill(torch.where(flags > 0, 0.0, z), flags > 0)
        grades = torch.where(flags > 0, FAIL, 0)
        if self.basis.shape[1] == 0:
            return self._finish(x, z, flags, grades)
        measured = (flags == 0) & ~self.alone
        single, block, middle = _scores(*self.residuals(z))
        z, rough = self._smooth(z, middle)
        rough = rough.unsqueeze(1) & measured
        count = self.inverse.shape[0]
        start = self.length - count * BLOCK
        for kind, distance, cut in ((SPIKE, single, self.cuts[0]), (BURST, block, self.cuts[1])):
            if distance.shape[1] == 0:
                continue
            doubt, sure = distance > cut * self.suspect, distance > cut
            shared = doubt.float().mean(2, keepdim=True) > MODELS.most_doubted
            sure = sure & ~shared if self.channels > 2 else sure
            if kind == BURST:
                doubt, sure = (_spread(mask, start) for mask in (doubt, sure))
            sure = sure & measured
            few = sure.flatten(1).float().mean(1) <= MODELS.most_doubted
            sure = self._confirm(z, sure & few.view(-1, 1, 1), kind, cut)
            z = self._fill(z, sure)
            new = (flags == 0) & measured & (doubt | sure)
            flags = torch.where(new, kind, flags)
            grades = torch.where(sure, FAIL, torch.where(new, SUSPECT, grades))
        flags = torch.where(rough & (flags == 0), BURST, flags)
        grades = torch.where(rough, FAIL, grades)
        return self._finish(x, z, flags, grades)

    def _finish(self, x: Tensor, z: Tensor, flags: Tensor, grades: Tensor) -> WindowJudgement:
        values = (z * self.scale + self.mean).to(x.dtype)
        return WindowJudgement(values, flags.to(torch.uint8), grades.to(torch.uint8))

    def _certain(self, values: Tensor, z: Tensor, dtype: torch.dtype) -> Tensor:
        """Flags of missing values, gap codes, broken rules, impossible values and stuck runs."""
        missing = ~torch.isfinite(z)
        grain = max(torch.finfo(dtype).eps, 10 * SMALL)
        code = torch.zeros_like(missing)
        if self.codes.shape[0]:
            near = grain * self.codes.abs() + torch.finfo(torch.float32).tiny
            code = ((values.unsqueeze(-2) - self.codes).abs() <= near).any(-2)
        ruled = (values < self.rule_range[0]) | (values > self.rule_range[1])
        wild = (z < self.limits[0]) | (z > self.limits[1])
        gone = missing | code | ruled | wild
        if self._limits_change:
            ruled = ruled | self._too_fast(values, gone)
            gone = gone | ruled
        flags = torch.where(wild, SPIKE, 0)
        flags = torch.where(self._stuck(z, gone, dtype), STUCK, flags)
        flags = torch.where(ruled, RULE, flags)
        flags = torch.where(code, CODE, flags)
        return torch.where(missing, MISSING, flags)

    def _too_fast(self, values: Tensor, gone: Tensor) -> Tensor:
        """Values that differ from the last accepted one by more than `max_change` a step."""
        last, since = torch.zeros_like(values[:, 0]), torch.zeros_like(values[:, 0])
        started = torch.zeros_like(gone[:, 0])
        fast = []
        for step in range(self.length):
            here, known = values[:, step], ~gone[:, step]
            since = since + 1
            broken = known & started & ((here - last).abs() > self.max_change * since)
            taken = known & ~broken
            last, since = torch.where(taken, here, last), torch.where(taken, 0.0, since)
            started = started | taken
            fast.append(broken)
        return torch.stack(fast, 1)

    def _stuck(self, z: Tensor, gone: Tensor, dtype: torch.dtype) -> Tensor:
        """Steps that repeat their predecessor in a run of at least `run_limit` values.

        In half precision neighbouring values are equal by rounding: nothing is stuck.
        """
        if dtype not in (torch.float32, torch.float64):
            return torch.zeros_like(gone)
        same = ((z[:, 1:] - z[:, :-1]).abs() <= SMALL) & ~gone[:, 1:] & ~gone[:, :-1]
        same = torch.cat([torch.zeros_like(same[:, :1]), same], 1)

        def long(same: Tensor, z: Tensor) -> Tensor:
            found = same & (_next(~same) - _last(~same) >= self.run_limit)
            if self.rests.shape[0]:
                near = (z.unsqueeze(-2) - self.rests).abs() <= 10 * SMALL * (1 + self.rests.abs())
                found = found & ~near.any(-2)
            return found

        enough = (same.float().sum(1) + 1 >= self.run_limit).any(1)
        return _on_windows(enough, long, same, z) & enough.view(-1, 1, 1)

    def _smooth(self, z: Tensor, middle: Tensor) -> tuple[Tensor, Tensor]:
        """Take noise out of channels whose median residual is large; which ones, `[B, C]`."""
        rough = (middle > self.cuts[2]) & ~self.alone
        many = rough.float().mean(1, keepdim=True) > MODELS.most_doubted
        rough = rough & ~many if self.channels > 2 else rough
        usual = self.size.mean(0) / NORMAL_MEDIAN
        noise = torch.where(rough, usual.square() * (middle.square() - 1), 0.0).unsqueeze(1)

        def smooth(z: Tensor, noise: Tensor) -> Tensor:
            weight = 1 / (1 + MODELS.entry_weight * noise / self.spread)
            fit = self.fit(z, weight.expand(z.shape))
            return z + noise / (noise + self.spread) * (fit - z)

        return _on_windows(rough.any(1), smooth, z, noise), rough

    def _confirm(self, z: Tensor, doubt: Tensor, kind: int, cut: Tensor) -> Tensor:
        """Which doubted entries are far from what all others, without the doubted, expect."""

        def again(doubt: Tensor, z: Tensor) -> Tensor:
            known = torch.where(doubt, 0.0, z)
            distance = (z - self.fit(known, (~doubt).to(z.dtype))).abs()
            if kind == SPIKE:
                return doubt & (distance / self.size > cut)
            count = self.inverse.shape[0]
            start = self.length - count * BLOCK
            blocks = distance[:, start:].reshape(z.shape[0], count, BLOCK, self.channels)
            far = blocks.square().mean(2).sqrt() / self.block_size > cut
            return doubt & _spread(far, start)

        return _on_windows(doubt.flatten(1).any(1), again, doubt, z)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> WindowGuard:
        """Follow a move to another device; a cast to another precision changes nothing."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(fn(torch.empty(0, dtype=tensor.dtype, device=tensor.device)).device)

        return super()._apply(move, recurse)


BUFFERS = tuple(name for name, kind in WindowGuard.__annotations__.items() if kind == "Tensor")


def tracing() -> bool:
    """Whether a graph is being made, so that no Python branch may depend on values."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def _on_windows(hit: Tensor, change: Callable[..., Tensor], x: Tensor, *others: Tensor) -> Tensor:
    """`change(x, *others)` for the windows where `hit` `[B]`; the others stay as they are.

    In eager mode only those windows are computed; in a graph all of them are.
    """
    if tracing():
        own = hit.view((-1,) + (1,) * (x.dim() - 1))
        changed = change(x, *others)
        if x.dtype == torch.bool:  # onnxruntime chooses between numbers alone
            return (own & changed) | (~own & x)
        return torch.where(own, changed, x)
    rows = hit.nonzero().squeeze(1)
    if len(rows) == 0:
        return x
    result = x.clone()
    result[rows] = change(x[rows], *(other[rows] for other in others))
    return result


def _scores(single: Tensor, block: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Residuals of entries `[B, L, C]` and blocks `[B, n, C]`, and their medians `[B, C]`.

    They are divided by what three quarters of the channels of a window exceed: when everything
    moves, a move is no fault.
    """
    middle = single.sort(1).values[:, (single.shape[1] - 1) // 2]
    shared = middle.sort(1).values[:, (single.shape[2] - 1) // 4].clamp_min(1.0)
    wide = shared.view(-1, 1, 1)
    return single / wide, block / wide, middle / shared.view(-1, 1)


def _spread(blocks: Tensor, start: int) -> Tensor:
    """Marks of blocks `[B, n, C]` on their steps `[B, L, C]`; the first `start` have no block."""
    steps = blocks.repeat_interleave(BLOCK, 1)
    if not start:
        return steps
    return torch.cat([torch.zeros_like(steps[:, :1]).expand(-1, start, -1), steps], 1)


def _last(flags: Tensor) -> Tensor:
    """The latest step at or before each step where `flags` holds, or -1; `[B, L, C]` int32."""
    length = flags.shape[1]
    steps = torch.arange(length, device=flags.device, dtype=torch.int32).view(1, length, 1)
    latest, reach = torch.where(flags, steps, -1), 1
    while reach < length:  # by doubling: exported graphs know no running maximum
        shifted = torch.cat([latest[:, :reach], latest[:, :-reach]], 1)
        latest = torch.maximum(latest, shifted)
        reach *= 2
    return latest


def _next(flags: Tensor) -> Tensor:
    """The first step at or after each step where `flags` holds, or L; `[B, L, C]`."""
    return flags.shape[1] - 1 - _last(flags.flip(1)).flip(1)


def _bridge(residual: Tensor, bad: Tensor, carry: Tensor) -> Tensor:
    """The expected path of an AR(1) process between good residuals `[B, L, C]`."""
    length = bad.shape[1]
    steps = torch.arange(length, device=bad.device).view(1, length, 1)
    before, after = _last(~bad).long(), _next(~bad).long()
    left_value = residual.gather(1, before.clamp_min(0))
    right_value = residual.gather(1, after.clamp_max(length - 1))
    left = torch.where(before >= 0, carry ** (steps - before), 0.0)
    right = torch.where(after < length, carry ** (after - steps), 0.0)
    total = (1 - (left * right) ** 2).clamp_min(SMALL)
    return (left * (1 - right**2) * left_value + right * (1 - left**2) * right_value) / total


@torch.no_grad()
def fit_window_guard(
    values: Any,
    length: int,
    *,
    rows: Rows | None = None,
    config: GuardConfig | None = None,
    flags: np.ndarray | None = None,
    repaired: np.ndarray | None = None,
    levels: checks.Levels | None = None,
    rules: Sequence[ChannelRules] | None = None,
    step: float | None = None,
    seed: int = 0,
) -> WindowGuard:
    """Learn from training rows what windows look like; few rows teach only limits and runs.

    Args:
        values: Training rows `[T, C]` in the units in which windows will come; NaN is missing.
        length: Steps of a window.
        rows: Segments of the rows; no window lies across two.
        config: The thresholds.
        flags: `[T, C]` what is broken; found here if None.
        repaired: The rows without what is broken; made here if None.
        levels: What the checks learnt from the rows.
        rules: Of each channel.
        step: Seconds between rows, for rules by time.
        seed: Of the windows that the model is learnt from.

    Raises:
        ArgumentError: The rows are no numbers `[T, C]`.
    """
    config = GuardConfig() if config is None else config
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "fiub" or not array.shape[1]:
        raise ArgumentError(
            f"values must be numbers [T, C] (rows, channels), got {array.dtype} of shape "
            f"{list(array.shape)}."
        )
    if not isinstance(length, int) or length < SHORTEST_WINDOW:
        raise ArgumentError(
            f"window must be a number of at least {SHORTEST_WINDOW} steps, got {length!r}."
        )
    rows = Rows.single(len(array)) if rows is None else rows
    array = array.astype(np.float64)
    if flags is None or repaired is None or levels is None:
        levels, found = checks.learn(array, rows, config)
        flags = found.flags * (found.grades == FAIL)
        repaired = RepairModel.fit(array, flags > 0, rows).fill(array, flags > 0, rows)
    tensors = _limit_tensors(array, repaired, flags, rows, levels, rules, config, length, step)
    mean, scale = tensors["mean"], tensors["scale"]
    z = ((torch.from_numpy(repaired) - mean) / scale).float()
    windows, stride = _cut(z, rows, length)
    enough = sum(len(s) for s in rows.segments) >= BLOCK * length and len(windows) > 1
    enough = enough and length >= BLOCK  # a shorter window is no example of what comes next
    model = _model_tensors(windows, stride, config, seed) if enough else _blank(length, len(mean))
    tensors = {**model, **tensors}
    guard = WindowGuard(length, config.online_suspect / config.online_fail, tensors).eval()
    if enough:
        guard.errors.copy_(_measure(guard, windows))
    return guard


def _limit_tensors(
    values: np.ndarray,
    repaired: np.ndarray,
    flags: np.ndarray,
    rows: Rows,
    levels: checks.Levels,
    rules: Sequence[ChannelRules] | None,
    config: GuardConfig,
    length: int,
    step: float | None,
) -> dict[str, Tensor]:
    """Buffers of limits, codes, runs and rules."""
    channels = values.shape[1]
    rules = [ChannelRules()] * channels if rules is None else rules
    mean, scale = repaired.mean(0), repaired.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    z = (repaired - mean) / scale
    low, high = z.min(0), z.max(0)
    room = np.maximum(high - low, 1.0) * config.online_range
    limits = np.stack([low - room, high + room])
    ranges = np.array([r.range or (-inf, inf) for r in rules]).T
    limits = np.where(np.isfinite(ranges), np.array([[-inf], [inf]]), limits)
    codes = [[*levels.codes[c], *rules[c].codes] for c in range(channels)]
    rests = [((np.array(levels.rests[c]) - mean[c]) / scale[c]).tolist() for c in range(channels)]
    runs, changes = np.empty(channels, np.int64), np.full(channels, inf)
    alone = np.array([r.leave_alone for r in rules])
    for c, own in enumerate(rules):
        runs[c] = _online_run_limit(values[:, c], flags[:, c] > 0, levels, c, rows, config, length)
        if own.longest_rest is not None:
            runs[c] = int(own.longest_rest.in_rows(step, "longest_rest")) + 1
            rests[c] = []
        if own.max_change is not None:
            changes[c] = own.max_change.per_row(step, "max_change")
    arrays = {
        "mean": mean,
        "scale": scale,
        "limits": limits,
        "rule_range": ranges,
        "codes": _table(codes),
        "rests": _table(rests),
        "max_change": changes,
    }
    tensors = {name: torch.from_numpy(np.asarray(a)).float() for name, a in arrays.items()}
    return {**tensors, "run_limit": torch.from_numpy(runs), "alone": torch.from_numpy(alone)}


def _table(values: Sequence[Sequence[float]]) -> np.ndarray:
    """Some numbers for each of C channels as `[n, C]`, NaN where there are fewer."""
    table = np.full((max(map(len, values), default=0), len(values)), np.nan)
    for channel, own in enumerate(values):
        table[: len(own), channel] = own
    return table


def _online_run_limit(
    column: np.ndarray,
    bad: np.ndarray,
    levels: checks.Levels,
    channel: int,
    rows: Rows,
    config: GuardConfig,
    length: int,
) -> int:
    """Shortest run that normal rows make seldom enough; too long for the window if there is none.

    The end of a run is not known online, so that runs which end gently count as normal.
    """
    share = config.suspect_rate
    same = (column[1:] == column[:-1]) & ~bad[1:] & ~bad[:-1]
    same &= rows.first[1:] == rows.first[:-1]
    same &= ~np.isin(column[1:], levels.rests[channel])
    first, stop = find_segments(same)
    runs = stop - first + 1
    limit = int(max(config.shortest_run, levels.run_limit[channel]))
    while limit <= length // 2 and limit * (runs >= limit).sum() > share * len(column):
        limit += 1
    return limit if limit <= length // 2 else length + 1


def _cut(z: Tensor, rows: Rows, length: int) -> tuple[Tensor, int]:
    """At most a few thousand windows `[N, L, C]` of rows `[T, C]`, and the rows between two."""
    entries = length * z.shape[1]
    most = min(MODELS.most_windows, max(BLOCK, MODELS.most_entries // entries))
    ranges = [torch.arange(s.start, s.stop - length + 1) for s in rows.segments if len(s) >= length]
    starts = torch.cat(ranges) if ranges else torch.zeros(0, dtype=torch.long)
    stride = max(1, len(starts) // most)
    return z[starts[::stride, None] + torch.arange(length)], stride


def _model_tensors(
    windows: Tensor, stride: int, config: GuardConfig, seed: int
) -> dict[str, Tensor]:
    """Buffers of the Gaussian model, and the cuts that normal windows keep.

    Sizes and cuts are those of windows that the model has not seen: the rows are cut into
    `folds` parts in order of time, and each part is judged by a model of the others. A cut is that
    of the part with the largest, so that a season or a year of its own is no fault.
    """
    model, length = _gaussian(windows, seed), windows.shape[1]
    unseen = []
    for number in range(MODELS.folds):
        first, stop = (len(windows) * end // MODELS.folds for end in (number, number + 1))
        margin = length // stride  # windows that overlap the part
        others = torch.cat([windows[: max(first - margin, 0)], windows[stop + margin :]])
        guard = WindowGuard(length, 1.0, _gaussian(others, seed))
        part = windows[first:stop][:: max(1, (stop - first) // MODELS.judged)]
        judged = map(guard.residuals, part.split(MODELS.batch))
        unseen.append([torch.cat(each) for each in zip(*judged, strict=True)])
    size, block_size = (
        torch.cat(parts).median(0).values.clamp_min(SMALL) for parts in zip(*unseen, strict=True)
    )
    model |= {"size": size, "block_size": block_size}
    cuts = []
    for residuals in unseen:
        single, block, middle = _scores(residuals[0] / size, residuals[1] / block_size)
        quantiles = (
            _upper(single.flatten(0, 1), config.false_rate),
            _upper(block.flatten(0, 1), config.false_rate * BLOCK),
            _upper(middle, config.suspect_rate),
        )
        cuts.append(torch.stack(quantiles))
    model["cuts"] = torch.stack(cuts).amax(0) * config.online_fail
    return model


def _blank(length: int, channels: int) -> dict[str, Tensor]:
    """Buffers by which nothing is flagged."""
    nothing, wide = torch.zeros(0, channels), torch.tensor([[-inf], [inf]]).repeat(1, channels)
    one, count = torch.ones(channels), length // BLOCK
    return {
        "mean": torch.zeros(channels),
        "scale": one,
        "basis": torch.zeros(length * channels, 0),
        "root": one,
        "spread": one,
        "carry": torch.full((channels,), MODELS.largest_carry),
        "lever": torch.ones(length, channels),
        "inverse": torch.eye(BLOCK).repeat(count, channels, 1, 1),
        "size": torch.ones(length, channels),
        "block_size": torch.ones(count, channels),
        "cuts": torch.full((3, channels), inf),
        "errors": torch.ones(len(STEPS), channels),
        "limits": wide,
        "rule_range": wide,
        "codes": nothing,
        "rests": nothing,
        "max_change": torch.full((channels,), inf),
        "run_limit": torch.full((channels,), length + 1),
        "alone": torch.zeros(channels, dtype=torch.bool),
    }


def _gaussian(windows: Tensor, seed: int) -> dict[str, Tensor]:
    """Buffers of the model of windows `[N, L, C]`."""
    _, length, channels = windows.shape
    tensors, count = _blank(length, channels), length // BLOCK
    flat = windows.flatten(1)
    vectors, variances = _leading_directions(flat, seed)
    residual = (flat - (flat @ vectors) @ vectors.T).view_as(windows)
    power = residual.square().mean((0, 1)).clamp_min(SMALL)
    products = (residual[:, 1:] * residual[:, :-1]).mean((0, 1))
    tensors |= {"spread": power, "root": (MODELS.entry_weight / power).sqrt()}
    tensors["carry"] = (products / power).clamp(SMALL, MODELS.largest_carry)
    basis = _turn(vectors * variances.sqrt(), tensors["root"].repeat(length))
    turned = basis.view(length, channels, -1)
    tensors["basis"] = basis
    tensors["lever"] = (1 - turned.square().sum(-1)).clamp_min(SMALL)
    rank = turned.shape[-1]
    blocks = turned[length - count * BLOCK :].reshape(count, BLOCK, channels, rank).transpose(1, 2)
    inner = torch.eye(BLOCK) - blocks @ blocks.transpose(-1, -2)
    inner = inner.double() + SMALL * torch.eye(BLOCK, dtype=torch.float64)
    tensors["inverse"] = torch.linalg.inv(inner).float()
    return tensors


def _upper(values: Tensor, share: float) -> Tensor:
    """The value `[C]` that a share of values `[N, C]` exceeds; infinite without values."""
    if not len(values):
        return torch.full(values.shape[1:], inf)
    ordered = values.sort(0, descending=True).values
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _leading_directions(flat: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Leading eigenvectors `[D, K]` and eigenvalues `[K]` of the covariance of windows `[N, D]`.

    Subspace iteration, so that windows of many channels cost no more than products of matrices.
    """
    extra, turns = 2 * BLOCK, BLOCK
    generator = torch.Generator().manual_seed(seed)
    count = max(1, min(MODELS.directions, len(flat) - 1, flat.shape[1]))
    wide = min(count + extra, *flat.shape)
    start = torch.randn(flat.shape[1], wide, generator=generator, dtype=flat.dtype)
    space = torch.linalg.qr(start).Q
    for _ in range(turns):
        space = torch.linalg.qr(flat.T @ (flat @ space)).Q
    inside = flat @ space
    values, turn = torch.linalg.eigh((inside.T @ inside / len(flat)).double())
    vectors = space @ turn.flip(1)[:, :count].to(flat.dtype)
    return vectors, values.flip(0)[:count].clamp_min(0).to(flat.dtype)


def _turn(loadings: Tensor, root: Tensor) -> Tensor:
    """Scale entries by `root` and turn directions so that a complete window needs no solving."""
    scaled = (loadings * root[:, None]).double()
    precision = torch.eye(scaled.shape[1], dtype=torch.float64) + scaled.T @ scaled
    factor = torch.linalg.cholesky(precision)
    turned = torch.linalg.solve_triangular(factor, scaled.T, upper=False)
    return turned.T.to(loadings.dtype).contiguous()


def _measure(guard: WindowGuard, windows: Tensor) -> Tensor:
    """Deviation `[6, C]` of repairs at the end of a window, by steps since the last good value.

    It is scaled so that 90 % of the errors lie within a normal 90 % interval.
    """
    groups = min(guard.channels, BLOCK)
    entries = MODELS.most_entries // guard.length  # every group and step is a pass over them
    most = min(MODELS.batch, max(BLOCK, entries // windows[0].numel()))
    sample = windows[:: max(1, len(windows) // most)]
    errors = torch.ones(len(STEPS), guard.channels)
    for place, steps in enumerate(STEPS):
        if 2 * steps >= guard.length:
            errors[place] = errors[place - 1]
            continue
        for group in range(groups):  # a part of the channels is hidden together
            bad = torch.zeros_like(sample, dtype=torch.bool)
            bad[:, -steps:, group::groups] = True
            error = (guard._fill(sample, bad) - sample)[:, -1, group::groups].abs()
            errors[place, group::groups] = error.quantile(MODELS.coverage, dim=0) / INTERVAL
    return errors.cummax(0).values
