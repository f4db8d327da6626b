"""SACM in skorch.

net = NeuralNetRegressor(AttachedModule(Network, channels=3), callbacks=[SACMCallback()])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from skorch.callbacks import Callback
from torch import nn

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.window import InputArg, WindowLayout
from sacm.integrations.shared import MeanRate, WindowedNetwork, check_optimizers, modulator_of


class AttachedModule:
    """Makes attached modules; skorch calls it like the class of a module.

    skorch makes its optimizer right after the module, so a callback would attach too late. Settings
    such as `module__hidden=8` reach the class itself. `save_params`, `load_params`, pickling and
    `sklearn.base.clone` work as before.

    Args:
        module: The class of the network, or a function that makes it; one that returns
            `sacm.protect(network, guard)` repairs windows too.
        channels: Number of channels of a window.
        config: Settings of the method.
        input_arg: The window among the arguments of forward.
        window_layout: Order of the dimensions of the window.
        coverage: As in `sacm.attach`.
    """

    def __init__(
        self,
        module: Callable[..., nn.Module],
        *,
        channels: int,
        config: SACMConfig | None = None,
        input_arg: InputArg = 0,
        window_layout: WindowLayout = "BLC",
        coverage: Literal["modules", "all"] = "modules",
    ) -> None:
        self.module = module
        self.window = channels, input_arg, window_layout
        self.options: Any = {"config": config, "coverage": coverage}

    def __call__(self, **parameters: Any) -> nn.Module:
        """Make a network and attach to it."""
        windowed = WindowedNetwork(self.module(**parameters), *self.window)
        windowed.attach(**self.options)
        return windowed.network


class SACMCallback(Callback):
    """Checks that training reaches the scalars, and writes `sacm_rate_mean` into the history."""

    def __init__(self) -> None:
        self._rate = MeanRate()

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Complain if the network is not attached, or the optimizer was made before it was."""
        modulator = modulator_of(net.module_)
        if modulator is None:
            raise ArgumentError(
                f"{type(net.module_).__name__} is not attached: pass "
                "module=AttachedModule(…, channels=…) to the net."
            )
        check_optimizers(modulator, [net.optimizer_])

    def on_batch_end(
        self, net: Any, batch: Any = None, training: bool = False, **kwargs: Any
    ) -> None:
        """Remember the mean rate of a step."""
        if training:
            self._rate.add(net.module_)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Write the mean rate of the epoch."""
        mean = self._rate.read()
        if mean is not None:
            net.history.record("sacm_rate_mean", mean)
