"""A Lightning callback that attaches SACM, and the base of those for libraries on Lightning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.inject.sites import MODULATOR
from sacm.inject.window import InputArg, WindowLayout
from sacm.integrations.shared import Coverage, WindowedNetwork


class AttachCallback(Callback):
    """Attaches before optimizers and checkpoints, and logs the mean dropout rate of every epoch.

    Args:
        config: Settings of the method.
        coverage: As in `sacm.attach`.
    """

    locate: Callable[[Any], WindowedNetwork]  # from the LightningModule to its network
    # For libraries that load checkpoints into a raw network of their own: the scalars are not among
    # the weights, and a loaded model starts with new ones.
    raw_checkpoints: ClassVar[bool] = False

    def __init__(self, *, config: SACMConfig | None = None, coverage: Coverage = "modules") -> None:
        self.modulator: CapacityModulator | None = None  # until `setup`
        self.config, self.coverage = config, coverage

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Attach; a network that is attached already stays as it is."""
        network = self.locate(pl_module)
        self.modulator = getattr(network.model, MODULATOR, None)
        if self.modulator is None:
            window = network._asdict()
            self.modulator = attach(**window, config=self.config, coverage=self.coverage)
            if self.raw_checkpoints and hasattr(network.model, MODULATOR):
                network.model.register_state_dict_post_hook(_hide_scalars)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Raise an error if an optimizer was made too early to hold the modulator's scalars."""
        groups = [group for optimizer in trainer.optimizers for group in optimizer.param_groups]
        held = {id(parameter) for group in groups for parameter in group["params"]}
        if self.modulator is None or not self.modulator.stand_ins:
            return
        if any(id(scalar) not in held for scalar in self.modulator.parameters()):
            raise ArgumentError(
                "the optimizer does not hold SACM's scalars: it was made before the model was "
                "attached or from some of its parameters; make it from model.parameters() after "
                "attaching."
            )

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log the mean rate."""
        rates = None if self.modulator is None else self.modulator.rates
        if rates is not None:  # there is no dropout otherwise, which attaching has said
            options: dict[str, Any] = {"on_step": False, "on_epoch": True, "batch_size": len(rates)}
            pl_module.log("sacm/rate_mean", rates.mean(), **options)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the modulator out: a callback may be saved among the settings of a model."""
        return {**self.__dict__, "modulator": None}


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
        target: The dotted name of the network inside the LightningModule whose forward takes the
            windows; "" for the LightningModule itself, if `training_step` calls `self(x)`. For a
            network that is made in `configure_model`, call `sacm.attach` there instead.
        channels, config, input_arg, window_layout, coverage: As in `sacm.attach`.
    """

    def __init__(
        self,
        *,
        channels: int | None = None,
        target: str = "",
        config: SACMConfig | None = None,
        input_arg: InputArg = 0,
        window_layout: WindowLayout = "BLC",
        coverage: Coverage = "modules",
    ) -> None:
        super().__init__(config=config, coverage=coverage)
        self.target, self.window = target, (channels, input_arg, window_layout)

    def locate(self, pl_module: LightningModule) -> WindowedNetwork:
        """Return the network; raises an ArgumentError if there is none."""
        network = dict(pl_module.named_modules()).get(self.target)
        if network is None or not any(p.requires_grad for p in network.parameters()):
            names = ", ".join(name for name, _ in pl_module.named_children()) or "none"
            raise ArgumentError(
                f"{type(pl_module).__name__} has no trainable module {self.target!r}; it has "
                f"{names}: name the network with target=…"
            )
        return WindowedNetwork(network, *self.window)
