"""Lightning callbacks that change the network of a LightningModule before it is trained."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.modulator import CapacityModulator
from sacm.inject.state import MODULATOR
from sacm.integrations.attached import (
    WindowedNetwork,
    check_optimizers,
    modulator_of,
    protect_network,
)
from sacm.integrations.scalars import put_scalars

Locator = Callable[[Any], WindowedNetwork | None]  # None while the network is not made yet


class NetworkCallback(Callback, ABC):
    """Changes the network of a LightningModule before optimizers and checkpoints.

    Args:
        locate: From the LightningModule to its network, or None while that is not made yet.
    """

    def __init__(self, locate: Locator) -> None:
        self.locate = locate

    @abstractmethod
    def change(self, found: WindowedNetwork) -> None:
        """Change the network; called again for a network that is changed already."""

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Change the network now, or after `configure_model` if that is where it is made."""
        found = self.locate(pl_module)
        if found is not None:
            self.change(found)
            return
        original = pl_module.configure_model

        @functools.wraps(original)
        def configure_model() -> None:
            original()
            self.change(self.find(pl_module))

        pl_module.configure_model = configure_model  # type: ignore[method-assign]  # Lightning has no hook for callbacks there

    def find(self, pl_module: LightningModule) -> WindowedNetwork:
        """Return the network, or complain that there is none."""
        found = self.locate(pl_module)
        if found is None:
            target = getattr(self.locate, "target", "")
            known = [name for name, _ in pl_module.named_children()]
            raise ArgumentError(
                f"{type(pl_module).__name__} has no trainable module {target!r}; it has "
                f"{', '.join(known) or 'none'}: name the network with target=…"
            )
        return found


class AttachCallback(NetworkCallback):
    """Attaches SACM to the network that `locate` finds and logs the mean rate of every epoch.

    Args:
        locate: From the LightningModule to its network, or None while that is not made yet.
        **options: What `sacm.attach` takes beyond the network and its window.

    Attributes:
        modulator: The modulator of the network; None before the callback was set up.
    """

    def __init__(self, locate: Locator, **options: Any) -> None:
        super().__init__(locate)
        self.modulator: CapacityModulator | None = None
        self._options = options

    def change(self, found: WindowedNetwork) -> None:
        """Attach; a network that is attached already stays as it is."""
        network, channels, input_arg, layout = found
        self.modulator = modulator_of(network) or attach(
            network, channels=channels, input_arg=input_arg, window_layout=layout, **self._options
        )

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Complain if the network was never found."""
        if self.modulator is None:
            self.change(self.find(pl_module))

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Complain if an optimizer was made too early."""
        modulator = modulator_of(self.find(pl_module).network)
        if modulator is not None:
            check_optimizers(modulator, trainer.optimizers)

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Log the mean rate."""
        modulator = modulator_of(self.find(pl_module).network)
        if modulator is None or modulator.rates is None:  # no dropout, which attaching has said
            return
        pl_module.log(
            "sacm/rate_mean",
            modulator.rates.mean(),
            on_step=False,
            on_epoch=True,
            batch_size=len(modulator.rates),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave the modulator out: a callback may be saved among the settings of a model."""
        return {**self.__dict__, "modulator": None}


class RawCheckpointCallback(AttachCallback):
    """An `AttachCallback` for libraries that load checkpoints into a raw network of their own.

    The weights of a checkpoint stay those of the raw network. The scalars are the state of this
    callback in it, and are read when training is resumed from it.
    """

    def change(self, found: WindowedNetwork) -> None:
        """Attach, and hide the scalars from the state dict of the network."""
        fresh = modulator_of(found.network) is None
        super().change(found)
        if fresh and modulator_of(found.network) is not None:
            found.network.register_state_dict_post_hook(_hide_scalars)

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


class GuardCallback(NetworkCallback):
    """Makes the network that `locate` finds repair its windows, in training and in evaluation.

    Args:
        locate: From the LightningModule to its network, or None while that is not made yet.
        guard: A `sacm.Guard` or `WindowGuard`, fitted in the units that the network is fed with.
    """

    def __init__(self, locate: Locator, guard: Any) -> None:
        super().__init__(locate)
        self.guard = guard

    def change(self, found: WindowedNetwork) -> None:
        """Protect the network."""
        protect_network(found, self.guard)
