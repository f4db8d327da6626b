"""The modulator: the module that `attach` adds to a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.core.distributed import average_gradient
from sacm.core.mapper import RateMapper
from sacm.core.no_compile import not_compiled
from sacm.core.scorer import SpectralScorer
from sacm.errors import ArgumentError
from sacm.inject.findings import report_nothing_adaptive, report_random_evaluation
from sacm.inject.functional.coverage import FunctionalCoverage
from sacm.inject.map_scores import map_scores
from sacm.inject.own_values import keep_own_values
from sacm.inject.probe.channels import find_channel_dims
from sacm.inject.probe.gradients import find_differentiable
from sacm.inject.probe.passes import PassRunner
from sacm.inject.probe.probe import Probe
from sacm.inject.probe.random_operations import find_random_operations
from sacm.inject.probe.refusal import refusing_to_be_probed
from sacm.inject.probe.verify import LayoutCheck, Verification
from sacm.inject.score_results import map_channels, read_scores
from sacm.inject.sites import ADAPTIVE, InsertedSite, Site, Tap, TapHook, restore_class, swap_class
from sacm.inject.state import Call, ModulationState
from sacm.inject.summary import format_summary
from sacm.inject.unresolved import Unresolved, layout_error
from sacm.inject.window_argument import WindowArgument


class CapacityModulator(nn.Module):
    """Scores the windows of every training forward and gives their rates to the dropout sites.

    Made by `sacm.attach` and registered as ``model.sacm_modulator``. Its 2C + 2 scalars are trained
    with the model; in evaluation it does nothing.

    Attributes:
        config: The settings.
        scorer: Module from windows `[B, L, C]` to scores `[B]`.
        mapper: Module from scores `[B]` to rates `[B]`.

    Example:
        >>> import sacm
        >>> model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.1), nn.Linear(8, 1))
        >>> modulator = sacm.attach(model, channels=3, example_inputs=torch.randn(4, 24, 3))
        >>> print(modulator.summary())
        site  kind     adaptive  layout     note
        ----  -------  --------  ---------  ----
        1     Dropout  yes       dim 0 = B  live
        1 of 1 dropout sites adaptive, 8 scalars added.
        >>> out = model(torch.randn(5, 24, 3))
        >>> modulator.scores.shape, modulator.rates.shape
        (torch.Size([5]), torch.Size([5]))
    """

    def __init__(
        self,
        *,
        window: WindowArgument,
        config: SACMConfig,
        scorer: nn.Module | None,
        mapper: nn.Module | None = None,
        per_channel: bool = False,
    ) -> None:
        super().__init__()
        self.config, self.window, self.per_channel = config, window, per_channel
        self.scorer = SpectralScorer(window.channels, config) if scorer is None else scorer
        self.mapper = RateMapper(config) if mapper is None else mapper
        self.state = ModulationState()
        self.adaptive: list[tuple[nn.Module | InsertedSite, Site]] = []
        self.left_alone: list[Site] = []
        self.frozen: dict[nn.Module, Site] = {}  # adaptive if the probe sees gradients there
        self.coverage: FunctionalCoverage | None = None
        self.probed, self.verification = False, Verification()
        self.random_evaluation: list[str] = []  # paths of what is random in evaluation
        self.register_load_state_dict_pre_hook(keep_own_values)

    @property
    def sites(self) -> list[Site]:
        """Every dropout site of the model: adaptive, or with the reason why not."""
        functional = [] if self.coverage is None else self.coverage.sites
        return [*(site for _, site in self.adaptive), *functional, *self.left_alone]

    @property
    def rates(self) -> Tensor | None:
        """Dropout rates `[B]` of the last training forward; None before the first."""
        return None if self.state.rates is None else self.state.rates.detach()

    @property
    def scores(self) -> Tensor | None:
        """Unreliability scores `[B]` of the last training forward; None before the first."""
        return self.state.scores

    def summary(self) -> str:
        """Return a table of the sites and the number of parameters added.

        Returns:
            One line per site (name, kind, adaptive or not, layout, note) and a closing line, then
            what else is random in the model.
        """
        unchanged = not self.adaptive and self.coverage is None
        added = 0 if unchanged else sum(p.numel() for p in self.parameters())
        return format_summary(
            self.sites,
            added,
            random_evaluation=self.random_evaluation,
            random_training=self.verification.random_training,
            unverified=self.verification.failure,
            everywhere=self.coverage is not None and self.coverage.everywhere,
        )

    @contextmanager
    def forced_rates(self, rates: Tensor) -> Iterator[None]:
        """Use given rates instead of the mapper's within a `with` block.

        Args:
            rates: Rates `[B]`, each in [0, 1); training batches must hold `B` windows.

        Raises:
            ArgumentError: The rates have another shape or type, or lie outside [0, 1).

        Example:
            >>> import sacm
            >>> model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.1))
            >>> modulator = sacm.attach(model, channels=3)
            >>> with modulator.forced_rates(torch.tensor([0.0, 0.5])):
            ...     out = model(torch.ones(2, 4, 3))
            >>> torch.allclose(out[0], model[0](torch.ones(4, 3)))
            True
        """
        rates = torch.as_tensor(rates)
        if rates.dim() != 1 or not rates.is_floating_point():
            raise ArgumentError(
                f"forced rates must be a [B] tensor of floats, got {list(rates.shape)} of "
                f"{rates.dtype}."
            )
        if not bool(((rates >= 0) & (rates < 1)).all()):
            raise ArgumentError("forced rates must lie in [0, 1).")
        before, self.state.forced = self.state.forced, rates
        try:
            yield
        finally:
            self.state.forced = before

    def replicate(self) -> set[nn.Parameter]:
        """Average the gradients of the scalars over all processes, for wrappers that cannot.

        `fully_shard` takes no scalar parameters. It leaves those alone that this returns.
        `DistributedDataParallel` averages all gradients itself and does not need it.

        Returns:
            The trained scalars, for ``fully_shard(model, ignored_params=modulator.replicate())``.
        """
        scalars = {p for p in self.parameters() if p.requires_grad}
        for scalar in scalars:
            scalar.register_post_accumulate_grad_hook(average_gradient)
        return scalars

    def forward(self, value: Any, *_: Any) -> Any:
        """Return the value: `nn.Sequential` calls this child like every other."""
        return value

    def compute_rates(self, window: Tensor) -> Tensor:
        """Return rates `[B]` for windows `[B, L, C]`; leaves the scores in `state`."""
        reliable = None
        if self.config.nonfinite == "max_rate":
            reliable = torch.isfinite(window).flatten(1).all(dim=1)  # [B]
            window = torch.where(reliable.view(-1, 1, 1), window, 0)
        quick = not self.per_channel and self.scorer._compiled_call_impl is None
        if quick and type(self.scorer) is SpectralScorer:
            result: Any = self.scorer.score(window)
        else:
            result = self.scorer(window)
        scores = read_scores(result, window)
        if self.per_channel:
            rates, self.state.channel_rates = map_channels(result, reliable, self._map)
        else:
            rates = self._map(scores.float() if scores.itemsize < 4 else scores, reliable)
        self.state.scores = scores.detach()
        if reliable is not None:
            self.state.scores = torch.where(reliable, self.state.scores, torch.inf)
        return rates

    def _map(self, scores: Tensor, reliable: Tensor | None) -> Tensor:
        """Map scores `[B]` to rates `[B]`."""
        return map_scores(self.mapper, scores, reliable, self.config.p_max)

    def before_forward(
        self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Compute the rates; forward pre-hook of the attached model, in training only."""
        if not model.training or self.state.probing:
            return
        if getattr(model, "_is_replica", False):
            raise ArgumentError(
                "nn.DataParallel shares one model between threads: use DistributedDataParallel."
            )
        call = Call(model, args, kwargs)
        self.state.begin(call)
        window = self.window(args, kwargs)
        forced = self.state.forced
        if not self.probed:
            self.probe(call)
        elif forced is None and not torch.compiler.is_compiling():
            self._verify_now_and_then(call, window)
        if forced is None:
            self.state.rates, self.state.roots = self.compute_rates(window), (window, self)
        elif forced.shape[0] != window.shape[0]:
            raise ArgumentError(
                f"{forced.shape[0]} forced rates were given for a batch of {window.shape[0]}."
            )
        else:
            self.state.rates, self.state.roots = forced.to(window.device), (forced,)

    def _verify_now_and_then(self, call: Call, window: Tensor) -> None:
        """Check the layouts in some of the training forwards; rarer as training goes on."""
        if torch.is_grad_enabled() and self.verification.is_due(window):
            self.verify(call)

    def after_forward(self, model: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """End the forward; forward hook of the attached model, called even if it raised."""
        if not self.state.probing:
            self.state.end()

    @not_compiled
    def probe(self, call: Call, *, wanted: Site | None = None) -> None:
        """Find the layout of every site, or of one `wanted` site; see `inject.probe`."""
        # Functional dropout, and calls made in training only, do not show in evaluation mode.
        training = wanted is not None or self.coverage is not None
        runner = PassRunner(call.model, self._install_taps)
        stated = getattr(call.model, "sacm_layouts", {})
        probe = Probe(runner, self.window, stated, training=training)
        with self._paused(call.model), refusing_to_be_probed(call):
            if wanted is not None:
                self._probe_again(probe, call, wanted)
                return
            if self.frozen:
                self._thaw(probe, call)
            random_evaluation = probe.run(call)
            if self.per_channel:
                find_channel_dims(runner, self.window, call, (site for _, site in self.adaptive))
        self._finish_probe(call.model, random_evaluation)
        self.verify(call, splits=2)

    @not_compiled
    def verify(self, call: Call, *, splits: int = 1) -> None:
        """Check the layouts on this batch, in training mode and at its size.

        Raises:
            LayoutError: Rows belong to other windows than the layouts say.
        """
        runner = PassRunner(call.model, self._install_taps)
        check = LayoutCheck(runner, self.window, getattr(call.model, "sacm_layouts", {}))
        problems: list[Unresolved] = []
        with self._paused(call.model):
            try:
                if not self.verification.done:
                    few = Probe(runner, self.window, {}).choose_batch(call).call
                    self.verification.random_training = find_random_operations(runner, few)
                for split in range(splits):
                    problems += check.find_contradictions(call, self.verification.done + split)
            except Exception as error:  # example inputs need not be enough for training mode
                self.verification.failure = f"{type(error).__name__}: {error}"
                return
        self.verification.failure = ""
        self.verification.done += splits
        if self.state.call is None:  # example inputs, not a training batch
            self.verification.example = self.window(call.args, call.kwargs).detach().clone()
        if problems:
            raise layout_error(type(call.model).__name__, problems)

    def _probe_again(self, probe: Probe, call: Call, wanted: Site) -> None:
        """Find the layout of a site in mid-forward: with few windows, or else with all of them."""
        probe.run(call, wanted=wanted)
        LayoutCheck(probe.runner, self.window).resolve(call, wanted)

    def _thaw(self, probe: Probe, call: Call) -> None:
        """Make sites adaptive that have frozen neighbours but an activation with gradients."""
        few = probe.choose_batch(call).call
        for module in find_differentiable(probe.runner, few, self.frozen):
            site = self.frozen[module]
            site.adaptive, site.reason = True, ""
            self.left_alone.remove(site)
            if type(module) in ADAPTIVE:
                self.adaptive.append((module, site))
                swap_class(module, site)
            elif self.coverage is not None:  # its stand-in is there already
                self.coverage.own_sites.append(site)
        self.frozen = {}

    @contextmanager
    def _paused(self, model: nn.Module) -> Iterator[None]:
        """Pause this modulator and those of attached models inside the model."""
        with ExitStack() as stack:
            for module in model.modules():
                if isinstance(module, CapacityModulator):
                    stack.enter_context(module.state.passive())
            yield

    def _install_taps(self, tap: Tap) -> Iterator[Any]:
        """Install a tap at every site; yields what removes it."""
        for host, site in self.adaptive:
            module = host.host if isinstance(host, InsertedSite) else host
            yield module.register_forward_hook(TapHook(tap, site))
        if self.coverage is not None:
            yield self.coverage.install_tap(tap)

    def _finish_probe(self, model: nn.Module, random_evaluation: list[str]) -> None:
        """Keep the results of the first probe, and warn about what the user should know."""
        if self.coverage is not None:
            self.coverage.finish_probe()
        self._release_ordinary()
        self.probed = True
        self.random_evaluation = random_evaluation
        for site in self.sites:
            site.reached = bool(site.reached)
        if not any(site.adaptive for site in self.sites):
            self.requires_grad_(False)  # nothing gives the scalars a gradient
            report_nothing_adaptive(type(model).__name__, in_training=self.state.call is not None)
        if random_evaluation:
            report_random_evaluation(type(model).__name__, random_evaluation)

    def _release_ordinary(self) -> None:
        """Give modules whose site the probe left ordinary their own class back."""
        for host, site in [*self.adaptive]:
            if not site.adaptive and not isinstance(host, InsertedSite):
                self.adaptive.remove((host, site))
                self.left_alone.append(site)
                restore_class(host)
