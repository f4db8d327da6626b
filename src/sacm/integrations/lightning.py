"""A Lightning callback that attaches SACM to a network, and the base of those for libraries on it.

trainer = lightning.Trainer(callbacks=[SACMCallback(channels=7, target="network")])

Protect the network before: `sacm.protect(module.network, guard)`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.modulator import CapacityModulator
from sacm.inject.sites import MODULATOR, SiteLayout
from sacm.inject.window import InputArg, WindowLayout
from sacm.integrations.shared import (
    WindowedNetwork,
    check_optimizers,
    modulator_of,
    put_scalars,
)

Locator = Callable[[Any], WindowedNetwork | None]  # None while the network is not made yet


class NetworkCallback(Callback):
    """Changes the network of a LightningModule before optimizers and checkpoints.

    Attributes:
        locate: From the LightningModule to its network, or None while that is not made yet.
    """

    locate: Locator

    def change(self, windowed: WindowedNetwork) -> None:
        """Change the network; called again for a network that is changed already."""
        raise NotImplementedError

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Change the network now, or after `configure_model` if that is where it is made."""
        windowed = self.locate(pl_module)
        if windowed is not None:
            self.change(windowed)
            return
        original = pl_module.configure_model

        @functools.wraps(original)
        def configure_model() -> None:
            original()
            self.change(self.find(pl_module))

        pl_module.configure_model = configure_model  # type: ignore[method-assign]  # Lightning has no hook for callbacks there

    def find(self, pl_module: LightningModule) -> WindowedNetwork:
        """Return the network; raises an ArgumentError if there is none."""
        windowed = self.locate(pl_module)
        if windowed is None:
            names = ", ".join(name for name, _ in pl_module.named_children()) or "none"
            raise ArgumentError(
                f"{type(pl_module).__name__} has no trainable module "
                f"{getattr(self, 'target', '')!r}; it has {names}: name the network with target=…"
            )
        return windowed


class AttachCallback(NetworkCallback):
    """Attaches when a model is fitted, and logs the mean dropout rate of every epoch.

    Args:
        config: Settings of the method.
        coverage: As in `sacm.attach`.

    Attributes:
        modulator: The modulator of the network; None before the callback was set up.
    """

    def __init__(
        self,
        *,
        config: SACMConfig | None = None,
        coverage: Literal["modules", "all"] = "modules",
    ) -> None:
        self.modulator: CapacityModulator | None = None
        self._options: dict[str, Any] = {"config": config, "coverage": coverage}

    def change(self, windowed: WindowedNetwork) -> None:
        """Attach; a network that is attached already stays as it is."""
        self.modulator = modulator_of(windowed.network) or windowed.attach(**self._options)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Raise an error if the network was never found."""
        if self.modulator is None:
            self.change(self.find(pl_module))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Raise an error if an optimizer was made too early."""
        modulator = modulator_of(self.find(pl_module).network)
        if modulator is not None:
            check_optimizers(modulator, trainer.optimizers)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log the mean rate."""
        modulator = modulator_of(self.find(pl_module).network)
        if modulator is None or modulator.rates is None:  # no dropout, which attaching has said
            return
        rates = modulator.rates
        options: dict[str, Any] = {"on_step": False, "on_epoch": True, "batch_size": len(rates)}
        pl_module.log("sacm/rate_mean", rates.mean(), **options)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the modulator out: a callback may be saved among the settings of a model."""
        return {**self.__dict__, "modulator": None}


class RawCheckpointCallback(AttachCallback):
    """An `AttachCallback` for libraries that load checkpoints into a raw network of their own.

    The weights of a checkpoint stay those of the raw network. The scalars are the state of this
    callback in it, and are read when training is resumed from it.
    """

    def change(self, windowed: WindowedNetwork) -> None:
        """Attach, and hide the scalars from the state dict of the network."""
        fresh = modulator_of(windowed.network) is None
        super().change(windowed)
        if fresh and modulator_of(windowed.network) is not None:
            windowed.network.register_state_dict_post_hook(_hide_scalars)

    def state_dict(self) -> dict[str, Any]:
        """Return the scalars."""
        return {} if self.modulator is None else dict(self.modulator.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on with the scalars of a checkpoint."""
        if state_dict and self.modulator is not None:
            put_scalars(self.modulator, state_dict, "the checkpoint")


def _hide_scalars(module: Any, weights: dict[str, Tensor], prefix: str, metadata: Any) -> None:
    """Take the scalars out of a state dict."""
    for key in [key for key in weights if key.startswith(f"{prefix}{MODULATOR}.")]:
        del weights[key]


class SACMCallback(AttachCallback):
    """Attaches before optimizers and checkpoints, and logs the mean dropout rate of every epoch.

    Checkpoints hold the modulator's scalars under `<target>.sacm_modulator`. To load one into the
    raw network, use `load_from_checkpoint(path, strict=False)` or `sacm.strip_state_dict`. In
    `configure_optimizers` the scalars are best given no weight decay.

    Args:
        channels: Number of channels of a window; None reads it from the first batch.
        target: The dotted name of the network inside the LightningModule whose forward takes the
            windows; "" for the LightningModule itself, if `training_step` calls `self(x)`. It may
            also be made in `configure_model`.
        config: Settings of the method; this and all that follow are as in `sacm.attach`.
        input_arg: The window among the arguments of forward.
        window_layout: Order of the dimensions of the window.
        coverage: ``"modules"`` or ``"all"``.
        insert_after: Names or globs of modules whose output shall drop too.
        skip: Names or globs of dropout sites to leave ordinary.
        site_layouts: Layout by site name or glob.
    """

    def __init__(
        self,
        *,
        channels: int | None = None,
        target: str = "",
        config: SACMConfig | None = None,
        input_arg: InputArg = 0,
        window_layout: WindowLayout = "BLC",
        coverage: Literal["modules", "all"] = "modules",
        insert_after: Sequence[str] = (),
        skip: Sequence[str] = (),
        site_layouts: Mapping[str, SiteLayout] | None = None,
    ) -> None:
        super().__init__(config=config, coverage=coverage)
        self.target, self.window = target, (channels, input_arg, window_layout)
        self._options |= {"insert_after": insert_after, "skip": skip, "site_layouts": site_layouts}

    def locate(self, pl_module: LightningModule) -> WindowedNetwork | None:
        """Return the network if it exists yet."""
        try:
            network = pl_module.get_submodule(self.target)
        except AttributeError:
            return None
        # Before configure_model a network may be there as None, or without parameters.
        if not isinstance(network, nn.Module):
            return None
        if not any(p.requires_grad for p in network.parameters()):
            return None
        return WindowedNetwork(network, *self.window)
