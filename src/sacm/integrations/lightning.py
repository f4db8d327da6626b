"""A Lightning callback that attaches SACM to the network of a LightningModule.

trainer = lightning.Trainer(callbacks=[SACMCallback(channels=7, target="network")])
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import nn

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.layout import SiteLayout
from sacm.inject.modulator import CapacityModulator
from sacm.inject.window_argument import InputArg, WindowLayout
from sacm.integrations.attached import check_optimizers, modulator_of


class SACMCallback(Callback):
    """Attaches before optimizers and checkpoints, and logs the mean dropout rate of every epoch.

    target: the dotted name of the network inside the LightningModule whose forward takes the
    windows; "" for the LightningModule itself, if `training_step` calls `self(x)`. It may also be
    made in `configure_model`. The other options are those of `sacm.attach`.

    Checkpoints hold the modulator's scalars under `<target>.sacm_modulator`. To load one into the
    raw network, use `load_from_checkpoint(path, strict=False)` or `sacm.strip_state_dict`. In
    `configure_optimizers` the scalars are best given no weight decay.
    """

    def __init__(
        self,
        *,
        channels: int,
        target: str = "",
        config: SACMConfig | None = None,
        input_arg: InputArg = 0,
        window_layout: WindowLayout = "BLC",
        coverage: Literal["modules", "all"] = "modules",
        insert_after: Sequence[str] = (),
        skip: Sequence[str] = (),
        site_layouts: Mapping[str, SiteLayout] | None = None,
    ) -> None:
        self.target = target
        self.modulator: CapacityModulator | None = None
        self._options: dict[str, Any] = {
            "channels": channels,
            "config": config,
            "input_arg": input_arg,
            "window_layout": window_layout,
            "coverage": coverage,
            "insert_after": insert_after,
            "skip": skip,
            "site_layouts": site_layouts,
        }

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Attach now, or after `configure_model` if that is where the network is made."""
        if self._network(pl_module) is not None:
            self._attach(pl_module)
            return
        original = pl_module.configure_model

        @functools.wraps(original)
        def configure_model() -> None:
            original()
            self._attach(pl_module)

        pl_module.configure_model = configure_model  # type: ignore[method-assign]  # Lightning has no hook for callbacks there

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Complain if the network was never found."""
        if self.modulator is None:
            self._attach(pl_module)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Complain if an optimizer was made too early."""
        if self.modulator is not None and modulator_of(self._found(pl_module)) is not None:
            check_optimizers(self.modulator, trainer.optimizers)

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Log the mean rate."""
        modulator = modulator_of(self._found(pl_module))
        if modulator is None or modulator.rates is None:  # no dropout, which attaching has said
            return
        pl_module.log(
            "sacm/rate_mean",
            modulator.rates.mean(),
            on_step=False,
            on_epoch=True,
            batch_size=len(modulator.rates),
        )

    def _network(self, pl_module: LightningModule) -> nn.Module | None:
        """The network, if it exists yet."""
        try:
            found = pl_module.get_submodule(self.target)
        except AttributeError:
            return None
        # Before configure_model a network may be there as None, or without parameters.
        ready = isinstance(found, nn.Module) and any(p.requires_grad for p in found.parameters())
        return found if ready else None

    def _found(self, pl_module: LightningModule) -> nn.Module:
        network = self._network(pl_module)
        if network is None:
            known = [name for name, _ in pl_module.named_children()]
            raise ArgumentError(
                f"{type(pl_module).__name__} has no trainable module {self.target!r}; it has "
                f"{', '.join(known) or 'none'}: name the network with target=…"
            )
        return network

    def _attach(self, pl_module: LightningModule) -> None:
        network = self._found(pl_module)
        self.modulator = modulator_of(network) or attach(network, **self._options)
