"""Rates of the running training forward, private to one attached model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from sacm.core.dropout import Keep
from sacm.inject.retained_rates import retain_rates

MODULATOR = "sacm_modulator"  # its name among the model's children, and in the model's state_dict
SITE_LAYERS = "sacm_site_layers"  # likewise, of layers that serve training alone


@dataclass
class Call:
    """A forward call in progress: what a probe needs to run it again."""

    model: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def probe_again(self, site: Any) -> None:
        """Probe this call in training mode for a site that met a tensor of unknown layout.

        The modulator is found by its name among the model's children, because sites know only
        their state.
        """
        modulator: Any = self.model.get_submodule(MODULATOR)
        modulator.probe(self, wanted=site)


@dataclass
class ModulationState:
    """Rates and scores of the current training forward; never copied or saved with the model.

    `call` is None between two forwards. The rates stay after a forward, because activation
    checkpointing re-runs parts of the model during the backward pass.
    """

    rates: Tensor | None = None  # [B], with its graph
    channel_rates: Tensor | None = None  # [B, C], with its graph, where channels have their own
    roots: Sequence[Tensor | nn.Module] = ()  # what that graph leads to
    repeated: bool = False  # whether the backward of the rates may run more than once
    scores: Tensor | None = None  # [B], detached
    forced: Tensor | None = None  # [B], set by `forced_rates`
    call: Call | None = None
    probing: bool = False
    keep_by_place: dict[Any, Keep] = field(default_factory=dict)

    def begin(self, call: Call) -> None:
        """Forget the last forward before anything of the next can fail."""
        self.rates = self.scores = self.channel_rates = None
        self.roots, self.repeated = (), False
        self.keep_by_place = {}
        self.call = call

    def end(self) -> None:
        """Note that the forward returned, or raised."""
        self.call = None

    def keep(self, like: Tensor) -> Keep | None:
        """Return keep probabilities `q = 1 - p` `[B]`; None outside of training steps."""
        if self.rates is None or (self.call is None and not _in_backward()):
            return None
        place = like.device, torch.is_grad_enabled()
        if self.rates.requires_grad and not torch.is_grad_enabled() and not self.repeated:
            # Reentrant checkpointing runs a part without gradients now, and with them in backward.
            sources = [*self._sources()]
            self.rates, self.repeated = retain_rates(self.rates, sources), True
            if self.channel_rates is not None:
                self.channel_rates = retain_rates(self.channel_rates, sources)
            self.keep_by_place = {}
        found = self.keep_by_place.get(place)
        if found is None:
            found = self.keep_by_place[place] = Keep.of(1 - self.rates.to(like.device))
        return found

    def keep_channels(self, like: Tensor) -> Keep | None:
        """Return keep probabilities `[B, C]`; None where channels have no rates of their own."""
        if self.keep(like) is None or self.channel_rates is None:
            return None
        place = like.device, torch.is_grad_enabled(), "channels"
        found = self.keep_by_place.get(place)
        if found is None:
            rates = self.channel_rates.to(like.device)
            found = self.keep_by_place[place] = Keep.of(1 - rates)
        return found

    def _sources(self) -> Iterator[Tensor]:
        """Yield the tensors whose gradients come from the rates; seldom needed, so not kept."""
        for root in self.roots:
            tensors = root.parameters() if isinstance(root, nn.Module) else [root]
            yield from (tensor for tensor in tensors if tensor.requires_grad)

    @contextmanager
    def passive(self) -> Iterator[None]:
        """Let sites pass activations on unchanged while a probe runs."""
        before = self.rates, self.probing
        self.rates, self.probing = None, True
        try:
            yield
        finally:
            self.rates, self.probing = before

    def __getstate__(self) -> dict[str, Any]:
        """Save nothing: copies and checkpoints start between two forwards."""
        return ModulationState().__dict__


def _in_backward() -> bool:
    """True while autograd runs a backward pass."""
    return torch._C._current_graph_task_id() != -1
