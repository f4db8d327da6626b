"""Repair windows before they reach a trained model, and give the model back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from sacm.errors import ArgumentError, SACMWarning
from sacm.inject.window import Arguments, InputArg, WindowArgument, WindowLayout
from sacm.quality.config import FAIL, SMALL, Fixed
from sacm.quality.windows import WindowGuard, tracing

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class RepairReport:
    """What the guard repaired in one batch."""

    repaired: Tensor  # which values, bool [B, L, C]

    @property
    def share(self) -> Tensor:
        """Share of repaired values by channel, `[C]`."""
        return self.repaired.float().mean(dim=(0, 1))

    def __str__(self) -> str:
        shares = ", ".join(f"{share:.1%}" for share in self.share.tolist())
        return f"repaired by channel: {shares} of {len(self.repaired)} windows"


@dataclass
class Protection:
    """A forward pre-hook that replaces the window among a model's arguments by its repair.

    The guard is no child of the model, which so keeps its state dict and its precision.
    """

    guard: WindowGuard
    argument: WindowArgument
    on_flag: Callable[[RepairReport], object] | None
    last_report: RepairReport | None = None
    warned: bool = False  # about units

    def __call__(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Return the arguments of `forward` with the window repaired, in the layout it came in."""
        window = self.argument.raw(args, kwargs)
        if self.guard.mean.device != window.device:
            self.guard.to(window.device)
        if window.dim() == 2 and self.argument.channels == 1:
            repaired = self._repair(window.unsqueeze(-1)).squeeze(-1)
        elif self.argument.layout == "BCL" and window.dim() > 2:
            repaired = self._repair(window.transpose(1, 2)).transpose(1, 2)
        else:
            repaired = self._repair(window)
        replaced: Arguments = self.argument.pick.replace(args, kwargs, repaired)
        return replaced

    def _repair(self, x: Tensor) -> Tensor:
        """Repair windows `[B, L, C]` and report it; warn once if units seem to be mixed up."""
        repaired, _, grades = self.guard.inspect(x)
        if tracing():  # graphs and traces hold no report
            return repaired
        changed = grades == FAIL
        first, self.last_report = self.last_report is None, RepairReport(changed)
        # A device would have to wait for every batch, so there only the first is looked at.
        if not self.warned and (first or x.device.type == "cpu"):
            share = float((changed & x.isfinite()).float().mean())
            self.warned = share > Fixed.most_doubted
            if self.warned:
                what = f"{self.argument.model_name}: the guard repaired {share:.0%} of a batch"
                why = "was it fitted on other units than the model's? Then pass scaler= to protect"
                warnings.warn(f"{what}; {why}.", SACMWarning, stacklevel=2)
        if self.on_flag is not None and bool(changed.any()):
            self.on_flag(self.last_report)
        return repaired


def protect(
    model: Model,
    guard: Any,
    *,
    input_arg: InputArg = 0,
    window_layout: WindowLayout = "BLC",
    scaler: Any = None,
    on_flag: Callable[[RepairReport], object] | None = None,
) -> Model:
    """Make `model` repair its windows before it sees them; in place, without retraining.

    Windows are repaired in evaluation and training mode, and in copies and exported graphs of the
    model; `model.sacm_guard.last_report` says what was repaired in the last batch.

    Args:
        model: Any module whose `forward` takes a window.
        guard: A fitted `sacm.Guard`, or what its `module()` returns.
        input_arg: The window among the arguments of `forward`: position, name or `WindowPath`.
        window_layout: "BLC" (batch, time, channel) or "BCL"; `[B, L]` is fine for one channel.
        scaler: What scales the model's windows, if the guard was fitted on rows before scaling: an
            object with `mean` and `std` by channel, or with a linear `inverse_transform`.
        on_flag: Called with a `RepairReport` after every batch in which a value was repaired; it
            makes every batch wait for the device.

    Example:
        >>> import numpy as np, sacm, torch
        >>> rows = np.random.default_rng(0).normal(size=(2000, 1))
        >>> model = protect(nn.Linear(1, 1), sacm.Guard().fit(rows))
        >>> window = torch.tensor(rows[None, :96]).float()
        >>> window[0, 50] = torch.nan
        >>> bool(model(window).isfinite().all())
        True
    """
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"protect needs an nn.Module, got {type(model).__name__}.")
    if hasattr(model, "_orig_mod"):
        raise ArgumentError("protect the model itself first, then compile it.")
    if _hooks(model):
        raise ArgumentError(f"{type(model).__name__} is already protected: unprotect it first.")
    if on_flag is not None and not callable(on_flag):
        raise ArgumentError(f"on_flag must be a function of a report, got {on_flag!r}.")
    module = guard.module() if callable(getattr(guard, "module", None)) else guard
    if not isinstance(module, WindowGuard):
        kind = type(guard).__name__
        raise ArgumentError(f"guard must be a fitted sacm.Guard or its module(), got {kind}.")
    argument = WindowArgument(model, input_arg, window_layout, module.channels)
    if not argument.can_replace:
        raise ArgumentError("input_arg is a function, which cannot put a repaired window back.")
    if scaler is not None:
        module = module.rescaled(*_units_of(scaler, module.channels))
    protection = Protection(module, argument, on_flag)
    model.register_forward_pre_hook(protection, with_kwargs=True)
    model.sacm_guard = protection  # type: ignore[assignment]  # no module: it stays out of the state
    return model


def unprotect(model: Model) -> Model:
    """Give the model, or a copy of it, back as it was before `protect`.

    Example:
        >>> model = nn.Linear(2, 2)
        >>> unprotect(model) is model
        True
    """
    for key in _hooks(model):
        del model._forward_pre_hooks[key]
        model._forward_pre_hooks_with_kwargs.pop(key, None)
        del model.sacm_guard
    return model


def _hooks(model: nn.Module) -> list[int]:
    """The hooks that `protect` has set; found by type, because copies lose the handle."""
    return [key for key, hook in model._forward_pre_hooks.items() if isinstance(hook, Protection)]


def _units_of(scaler: Any, channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation `[C]` of a linear scaler, from three rows that it scales back."""
    kind, last = type(scaler).__name__, -1.0 - np.arange(channels)
    rows = np.stack([np.zeros(channels), np.ones(channels), last])
    try:
        back = getattr(scaler, "inverse_transform", None)
        rows = back(rows) if back else rows * np.ravel(scaler.std) + np.ravel(scaler.mean)
        offset, ones, others = np.asarray(rows, np.float64).reshape(-1, channels)
    except Exception as error:  # scalers have many kinds of their own
        why = f"{kind} does not take rows of the guard's {channels} channels: {error}"
        must = "scaler must have mean and std by channel, or inverse_transform"
        raise ArgumentError(f"{must}; {why}.") from error
    slope = ones - offset
    linear = np.allclose(offset + slope * last, others, rtol=SMALL)
    if not (linear and slope.all() and np.isfinite(slope).all()):
        why = f"{kind} is not, or has a deviation of 0, or no number, in some channel"
        raise ArgumentError(f"scaler must be linear, channel by channel: {why}.")
    return offset, slope
