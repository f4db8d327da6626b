"""The modulator: the module that `attach` adds to a model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.core.mapper import RateMapper, world_size
from sacm.core.no_compile import not_compiled
from sacm.core.scorer import SpectralScorer, without_autocast
from sacm.errors import ArgumentError, LayoutError, SACMWarning
from sacm.inject.probe import Probe
from sacm.inject.sites import ModulationState, Site, matches
from sacm.inject.stand_ins import StandIn
from sacm.inject.window import Args, Arguments, Kwargs, WindowArgument

VERIFIED_BATCHES = 2  # training batches after the probe on which layouts are verified


def _row(site: Site) -> tuple[str, ...]:
    layouts = site.layout if isinstance(site.layout, tuple) else (site.layout or "-",)
    state = "live" if site.reached else "unreached: declared but never called"
    state = "not probed yet" if site.reached is None else state
    notes = "; ".join(filter(None, (site.reason, state if site.adaptive else "")))
    adaptive = "yes" if site.adaptive else "no"
    return site.name, site.kind, adaptive, " or ".join(map(str, layouts)), notes


class CapacityModulator(nn.Module):
    """Scores the windows of every training forward and gives their rates to the dropout sites.

    Made by `sacm.attach` and registered as ``model.sacm_modulator``. Its 2C + 2 scalars are trained
    with the model; in evaluation it does nothing.

    Example:
        >>> import sacm
        >>> model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.1), nn.Linear(8, 1))
        >>> modulator = sacm.attach(model, example_inputs=torch.randn(4, 24, 3))
        >>> print(modulator.summary())
        site  kind     adaptive  layout     note
        ----  -------  --------  ---------  ----
        1     Dropout  yes       dim 0 = B  live
        1 of 1 dropout sites adaptive, 8 scalars added.
        >>> with modulator.forced_rates(torch.tensor([0.0, 0.5])):
        ...     out = model(torch.randn(2, 24, 3))
        >>> modulator.rates
        tensor([0.0000, 0.5000])
    """

    def __init__(
        self, window: WindowArgument, config: SACMConfig, scorer: nn.Module, mapper: nn.Module
    ) -> None:
        super().__init__()
        self.config, self.window = config, window
        self.scorer = scorer  # windows [B, L, C] to scores [B]
        self.mapper = mapper  # scores [B] to rates [B]
        self.state = ModulationState()
        self.module_sites: list[Site] = []  # adaptive or not, and inserted ones
        self.stand_ins: list[StandIn] = []
        self.handles: list[Any] = []  # of the hooks in the model
        self.probed, self.checks_left = False, VERIFIED_BATCHES
        self.unverified = ""  # what the model raised in the last verification

    @property
    def sites(self) -> list[Site]:
        """Every dropout site found so far, adaptive ones first, others with the reason why not."""
        called = [site for each in self.stand_ins for site in each.calls.values()]
        sites = dict.fromkeys([*self.module_sites, *called])
        return sorted(sites, key=lambda site: not site.adaptive)

    @property
    def rates(self) -> Tensor | None:
        """Dropout rates `[B]` of the last training forward; None before the first."""
        return None if self.state.rates is None else self.state.rates.detach()

    @property
    def scores(self) -> Tensor | None:
        """Unreliability scores `[B]` of the last training forward; None before the first."""
        return self.state.scores

    def summary(self) -> str:
        """Return a table of the sites with the number of parameters added, to be printed."""
        lines = ["No dropout found: the model is unchanged (insert_after=[…] adds sites)."]
        if self.sites:
            rows = [("site", "kind", "adaptive", "layout", "note"), *map(_row, self.sites)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            rows.insert(1, tuple("-" * width for width in widths))
            lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
            adaptive = sum(site.adaptive for site in self.sites)
            count = sum(p.numel() for p in self.parameters()) if self.stand_ins else 0
            added = "2C + 2" if self.stand_ins and self.window.channels is None else count
            total = f"{adaptive} of {len(self.sites)} dropout sites adaptive"
            lines.append(f"{total}, {added} scalars added.")
        if self.state.is_random and all(site.adaptive for site in self.sites):
            lines.append(
                "Also random in training: something that is not listed here (coverage='all' makes "
                "dropout called as a function adaptive)."
            )
        if self.unverified:
            lines.append(f"The layouts were not verified on a training batch: {self.unverified}")
        return "\n".join(lines)

    @contextmanager
    def forced_rates(self, rates: Tensor) -> Iterator[None]:
        """Use rates `[B]`, each in [0, 1), instead of the mapper's within a `with` block."""
        rates = torch.as_tensor(rates)
        is_share = bool(((rates >= 0) & (rates < 1)).all())
        if rates.dim() != 1 or not rates.is_floating_point() or not is_share:
            needed = "a [B] tensor of floats, which must lie in [0, 1)"
            raise ArgumentError(f"forced rates must be {needed}, got {rates.tolist()}.")
        before, self.state.forced = self.state.forced, rates
        try:
            yield
        finally:
            self.state.forced = before

    def forward(self, value: Any, *_: Any) -> Any:
        """Return the value: `nn.Sequential` calls this child like every other."""
        return value

    def compute_rates(self, window: Tensor) -> Tensor:
        """Return rates `[B]` for windows `[B, L, C]`; leaves the scores in `state`."""
        if type(self.scorer) is SpectralScorer and self.scorer._compiled_call_impl is None:
            scores = self.scorer.score(window)  # without the outputs that only `forward` returns
        else:
            result = self.scorer(window)
            scores = getattr(result, "scores", result)
            _check_shape("the scorer must give one score", scores, window.shape[:1])
        self.state.scores = scores.detach()
        with without_autocast(scores.device.type):
            rates: Tensor = self.mapper(scores.float() if scores.itemsize < 4 else scores)
        if isinstance(self.mapper, RateMapper):
            return rates
        _check_shape("the mapper must give one rate", rates, scores.shape)
        # Only on the CPU: on other devices this would synchronise in every step.
        if rates.device.type == "cpu" and not torch.compiler.is_compiling():
            outside = rates[~((rates >= 0) & (rates < 1))]
            if len(outside):
                raise ArgumentError(f"rates of the mapper must lie in [0, 1), got {outside[0]:g}.")
        return rates

    def before_forward(self, model: nn.Module, args: Args, kwargs: Kwargs) -> None:
        """Compute the rates; forward pre-hook of the attached model, in training only."""
        state = self.state
        if not model.training or state.tap is not None:
            return
        if getattr(model, "_is_replica", False):
            raise ArgumentError(
                "nn.DataParallel shares one model between threads: use DistributedDataParallel."
            )
        state.begin()
        window, forced = self.window(args, kwargs), state.forced
        if not self.probed:
            self.probe(model, (args, kwargs))
        elif not torch.compiler.is_compiling() and self.checks_left and forced is None:
            self._verify(model, (args, kwargs))
        if forced is None:
            state.rates = self.compute_rates(window)
        elif forced.shape[0] != window.shape[0]:
            raise ArgumentError(
                f"{forced.shape[0]} forced rates were given for a batch of {window.shape[0]}."
            )
        else:
            state.rates = forced.to(window.device)

    def after_forward(self, *_: Any) -> None:
        """End the forward; forward hook of the attached model, called even if it raised."""
        if self.state.tap is None:
            self.state.running = False

    def set_channels(self, channels: int) -> None:
        """Give the scalars of the scorer their shape, unless they have it."""
        if self.window.channels is not None:
            return
        self.window.channels = channels
        if isinstance(self.scorer, SpectralScorer) and self.scorer.channels is None:
            if self.state.running and world_size() > 1:
                raise ArgumentError("several processes train: tell attach channels=….")
            self.scorer.set_channels(channels)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Let a checkpoint of the raw model load; take the channels from an attached model's."""
        bias = state_dict.get(f"{prefix}scorer.bias")
        if bias is not None and bias.numel():
            self.set_channels(bias.numel())
        if not any(key.startswith(prefix) for key in state_dict):
            state_dict.update({prefix + key: value for key, value in self.state_dict().items()})
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @not_compiled
    def probe(self, model: nn.Module, arguments: Arguments) -> None:
        """Find the layout of every site on the batch of a call, or raise a `LayoutError`."""
        self.set_channels(self.window(*arguments).shape[2])
        probe = Probe(model, arguments, self.window, self.state)
        probe.find_randomness()
        probe.find_layouts()
        self._settle()
        self.probed = True
        for site in self.sites:
            site.reached = bool(site.reached)
        if not any(site.adaptive for site in self.sites):
            self.requires_grad_(False)  # nothing gives the scalars a gradient
            why = ", neither modules nor functional: add sites with insert_after=[…]"
            if self.sites:
                why = f" ({self.sites[0].name}: {self.sites[0].reason})"
            nothing = f"{probe.name} has no dropout to make adaptive{why}."
            if self.state.running and world_size() > 1:
                # The wrapper of this process waits for the gradients of the scalars.
                raise ArgumentError(f"{nothing} Do not attach it.")
            warnings.warn(nothing, SACMWarning, stacklevel=2)

    @not_compiled
    def _verify(self, model: nn.Module, arguments: Arguments) -> None:
        """Check the layouts on one of the first training batches, or raise a `LayoutError`."""
        if not torch.is_grad_enabled():
            return
        self.checks_left -= 1
        try:
            Probe(model, arguments, self.window, self.state).find_layouts([self.checks_left + 1])
        except LayoutError:
            raise
        except Exception as error:  # a failed check must not stop the training
            self.unverified = f"{type(error).__name__}: {error}"
            return
        self._settle()

    def check_names(self) -> None:
        """Raise an ArgumentError if a name or glob that the user gave matches no site."""
        names = [site.name for site in self.sites]
        for argument, globs in (("skip", self.state.skip), ("site_layouts", self.state.stated)):
            for glob in globs:
                if not any(matches(name, glob) for name in names):
                    raise ArgumentError(
                        f"{argument}: no dropout site matches {glob!r}; sites: "
                        f"{', '.join(names) or 'none'} (coverage='all' adds those of functions)."
                    )

    def _settle(self) -> None:
        """After a probe, remove stand-ins that intercepted nothing; those that never ran stay."""
        self.check_names()
        for each in [*self.stand_ins]:
            if each.handler is None and each.ran and not each.calls and not each.exempt:
                if each.site is not None:
                    each.site.leave_ordinary("not covered: a class that drops in a way of its own")
                if each.inserted is None:
                    each.uninstall()
                    self.stand_ins.remove(each)


def _check_shape(what: str, values: Any, shape: torch.Size) -> None:
    """Refuse what a user's own scorer or mapper gives if it is not one value for each window."""
    if not isinstance(values, Tensor) or values.shape != shape:
        given = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ArgumentError(f"{what} per window, {list(shape)}, but gave {given}.")
