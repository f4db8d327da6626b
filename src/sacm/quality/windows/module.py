"""The guard as a torch module: windows in, repaired windows out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from sacm.errors import ArgumentError
from sacm.quality.kinds import BURST, CODE, GOOD, MISSING, RANGE, SHIFT, SPIKE, STUCK
from sacm.quality.windows.flat_runs import PRECISIONS, FlatRuns, precision_of
from sacm.quality.windows.gaps import Gaps
from sacm.quality.windows.limits import Limits
from sacm.quality.windows.noise import WindowNoise
from sacm.quality.windows.offsets import Offsets
from sacm.quality.windows.parts import Part, tracing
from sacm.quality.windows.segments import Segments
from sacm.quality.windows.spikes import Spikes
from sacm.quality.windows.window_model import WindowModel

PARTS: dict[str, type[Part]] = {
    "limits": Limits,
    "runs": FlatRuns,
    "spikes": Spikes,
    "gaps": Gaps,
    "noise": WindowNoise,
    "model": WindowModel,
    "filling": WindowModel,
    "offsets": Offsets,
    "segments": Segments,
}
CHUNK = 256
"""Windows worked on together in eager mode: few enough to stay in the processor's cache."""


class Inspection(NamedTuple):
    """Repaired windows [B, L, C] and the kind of every fault, uint8 [B, L, C]; 0 is healthy."""

    repaired: Tensor
    flags: Tensor


class _Findings(NamedTuple):
    """Repaired z-scores and every flag, each [B, L, C] or broadcast to it."""

    z: Tensor
    missing: Tensor
    code: Tensor
    outside: Tensor
    stuck: Tensor
    spike: Tensor
    rough: Tensor
    shifted: Tensor

    def changed(self) -> Tensor:
        """Entries that are not healthy."""
        gone = self.missing | self.code | self.outside
        return gone | self.stuck | self.spike | self.rough | self.shifted


class WindowGuard(nn.Module):
    """Finds and repairs faults inside windows [B, L, C]; made by `fit_window_guard`.

    It looks at nothing but the window itself. Healthy entries come out bit by bit as they came in,
    whatever their precision; repaired ones are computed in float32. NaN and infinite entries count
    as missing. Gradients pass through healthy entries and stop at repaired ones. Buffers stay in
    float32 when a model that holds the guard is cast, and move with it between devices.

    Example:
        >>> from sacm.quality.windows.fit import fit_window_guard  # doctest: +SKIP
        >>> guard = fit_window_guard(train_rows, length=96)  # doctest: +SKIP
        >>> repaired = guard(windows)  # doctest: +SKIP
        >>> guard.flags(windows).float().mean()  # share of repaired entries, doctest: +SKIP
    """

    mean: Tensor
    scale: Tensor
    alone: Tensor
    limits: Limits
    runs: FlatRuns
    spikes: Spikes | None
    gaps: Gaps
    model: WindowModel
    filling: WindowModel
    noise: WindowNoise | None
    offsets: Offsets | None
    segments: Segments | None

    def __init__(
        self,
        mean: Tensor,
        scale: Tensor,
        length: int,
        parts: Mapping[str, Part],
        *,
        alone: Tensor | None = None,
    ) -> None:
        """Put the parts together; `alone`, bool [C]: see `leave_alone`."""
        super().__init__()
        self.length = length
        self.channels = len(mean)
        alone = torch.zeros(len(mean), dtype=torch.bool) if alone is None else alone
        self._leaves_some = bool(alone.any())  # asked once, not for every batch
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)
        self.register_buffer("alone", alone)
        for name in PARTS:
            self.add_module(name, parts.get(name))

    def forward(self, x: Tensor) -> Tensor:
        """Repair windows.

        Args:
            x: windows [B, L, C] in the units of the rows that the guard was fitted on.

        Returns:
            Windows of the same shape, precision and device; `x` itself if nothing was found.

        Raises:
            ArgumentError: If the windows have another length or other channels.
        """
        self.check(x)
        with torch.no_grad():
            found = self._find(x)
            changed = found.changed()
            if not tracing() and not bool(changed.any()):
                return x
            values = (found.z * self.scale + self.mean).to(x.dtype)
        return torch.where(changed, values, x)

    @torch.no_grad()
    def flags(self, x: Tensor) -> Tensor:
        """Which entries of windows [B, L, C] are faulty, bool [B, L, C]."""
        self.check(x)
        return self._find(x).changed().expand(x.shape)

    @torch.no_grad()
    def inspect(self, x: Tensor) -> Inspection:
        """Repair windows [B, L, C] and name the kind of every fault (`sacm.quality.kinds`)."""
        self.check(x)
        found = self._find(x)
        kinds = torch.full(x.shape, GOOD, dtype=torch.uint8, device=x.device)
        for flag, kind in (  # the last one that holds names the entry
            (found.shifted, SHIFT),
            (found.rough, BURST),
            (found.spike, SPIKE),
            (found.stuck, STUCK),
            (found.outside, RANGE),
            (found.code, CODE),
            (found.missing, MISSING),
        ):
            kinds = torch.where(flag, kind, kinds)
        values = (found.z * self.scale + self.mean).to(x.dtype)
        return Inspection(torch.where(kinds != GOOD, values, x), kinds)

    def check(self, x: Tensor) -> None:
        """Refuse anything but windows [B, length, channels] of floating-point numbers."""
        if x.dim() != 3 or x.shape[1] != self.length or x.shape[2] != self.channels:
            raise ArgumentError(
                f"The guard was fitted for windows [B, {self.length}, {self.channels}] (batch, "
                f"time, channel) but got {list(x.shape)}."
            )
        if not x.is_floating_point():
            raise ArgumentError(f"The guard needs floating-point windows, got {x.dtype}.")

    def leave_alone(self, channels: Tensor) -> WindowGuard:
        """The same guard, hands off some channels: what has a possible value there is healthy.

        Args:
            channels: Which ones, bool [C]. Missing values, gap codes and values outside of all
                limits are repaired in them as before.
        """
        parts = {name: part for name in PARTS if (part := getattr(self, name)) is not None}
        alone = self.alone | channels.to(self.alone.device)
        return WindowGuard(self.mean, self.scale, self.length, parts, alone=alone).eval()

    def config(self) -> dict[str, Any]:
        """What `load` needs besides the tensors of `state_dict()`; plain numbers and names."""
        present = [name for name in PARTS if getattr(self, name) is not None]
        return {"length": self.length, "channels": self.channels, "parts": present}

    @classmethod
    def load(cls, config: Mapping[str, Any], state: Mapping[str, Tensor]) -> WindowGuard:
        """Rebuild a guard from `config()` and `state_dict()`.

        Raises:
            ArgumentError: If a tensor that the configuration names is absent.
        """
        # Guards of earlier versions knew no doubtful values, and left no channel alone.
        none = torch.empty(0, int(config["channels"]))
        alone = torch.zeros(int(config["channels"]), dtype=torch.bool)
        state = {"runs.doubtful": none, "runs.remote": none.bool(), "alone": alone, **state}
        parts: dict[str, Part] = {}
        for name in config["parts"]:
            prefix = f"{name}."
            tensors = {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}
            parts[name] = PARTS[name](**tensors)
        wanted = {
            f"{name}.{buffer}" for name in config["parts"] for buffer in PARTS[name].__annotations__
        }
        if "model" in parts:  # guards of earlier versions had one model for everything
            parts.setdefault("filling", parts["model"])
        absent = sorted((wanted | {"mean", "scale"}) - set(state))
        if absent:
            raise ArgumentError(f"The saved guard lacks the tensor {absent[0]!r}.")
        return cls(
            state["mean"], state["scale"], int(config["length"]), parts, alone=state["alone"]
        )

    def _find(self, x: Tensor) -> _Findings:
        """All tests and repairs, in float32 whatever autocast says."""
        if not tracing() and len(x) > CHUNK:
            pieces = [self._find(piece) for piece in x.split(CHUNK)]
            return _Findings(*map(torch.cat, zip(*pieces, strict=True)))
        device = x.device.type
        if torch.is_autocast_enabled(device):
            with torch.autocast(device, enabled=False):
                return self._find_in_full_precision(x)
        return self._find_in_full_precision(x)

    def _find_in_full_precision(self, x: Tensor) -> _Findings:
        """Tests and repairs in the order in which one relies on the other."""
        precision = precision_of(x.dtype)
        values = x.detach().float()
        z = (values - self.mean) / self.scale
        missing = ~torch.isfinite(z)
        code = self.limits.is_code(values, torch.finfo(PRECISIONS[precision]).eps)
        outside = self.limits.outside(z)
        gone = missing | code | outside
        z = self.gaps.draw_lines(torch.where(gone, 0.0, z), gone)
        stuck = self._judged(self.runs(z, gone, precision))
        bad = gone | stuck
        spike = torch.zeros_like(bad)
        if self.spikes is not None:
            spike = self._judged(self.spikes(z) & ~bad)
        bad = bad | spike
        z, rough = self.gaps(self.filling, self.noise, self.gaps.draw_lines(z, bad), bad, spike)
        shifted = torch.zeros_like(bad)
        if self.offsets is not None:
            offset = self.offsets(z).unsqueeze(1)
            z, shifted = z - offset, shifted | (offset != 0)
        if self.segments is not None:
            whole = self.segments(self.model, z)
            z, shifted = whole, shifted | (whole != z)
        rough, shifted = self._judged(rough.unsqueeze(1)), self._judged(shifted)
        return _Findings(z, missing, code, outside, stuck, spike, rough, shifted)

    def _judged(self, flags: Tensor) -> Tensor:
        """Flags [B, L, C] without those of channels that are left alone."""
        return flags & ~self.alone if self._leaves_some else flags

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> WindowGuard:
        """Follow a move to another device; a cast to another precision leaves the numbers alone."""

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(fn(torch.empty(0, dtype=tensor.dtype, device=tensor.device)).device)

        return super()._apply(move, recurse)
