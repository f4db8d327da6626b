"""SACM and guards in skorch.

net = NeuralNetRegressor(AttachedModule(Network, channels=3), callbacks=[SACMCallback()])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from skorch.callbacks import Callback
from torch import Tensor, nn

from sacm.core.config import SACMConfig
from sacm.errors import ArgumentError
from sacm.inject.attach import attach
from sacm.inject.window import InputArg, WindowLayout
from sacm.integrations.shared import (
    WindowedNetwork,
    check_optimizers,
    modulator_of,
    protect_network,
)


class AttachedModule:
    """Makes attached modules; skorch calls it like the class of a module.

    skorch makes its optimizer right after the module, so a callback would attach too late. Settings
    such as `module__hidden=8` reach the class itself. `save_params`, `load_params`, pickling and
    `sklearn.base.clone` work as before.

    Args:
        module: The class of the network, or a function that makes it.
        channels: Number of channels of a window.
        config: Settings of the method.
        input_arg: The window among the arguments of forward.
        window_layout: Order of the dimensions of the window.
        coverage: As in `sacm.attach`.
        guard: A guard to repair windows with before the network gets them; None for none.
        adaptive: Whether to attach; False protects only.
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
        guard: Any = None,
        adaptive: bool = True,
    ) -> None:
        self.module, self.guard, self.adaptive = module, guard, adaptive
        self.window = channels, input_arg, window_layout
        self.config, self.coverage = config, coverage

    def __call__(self, **parameters: Any) -> nn.Module:
        """Make a network and attach to it."""
        network = self.module(**parameters)
        channels, input_arg, layout = self.window
        if self.guard is not None:
            protect_network(WindowedNetwork(network, *self.window), self.guard)
        if self.adaptive:
            attach(
                network,
                channels=channels,
                config=self.config,
                input_arg=input_arg,
                window_layout=layout,
                coverage=self.coverage,
            )
        return network


class SACMCallback(Callback):
    """Checks that training reaches the scalars, and writes `sacm_rate_mean` into the history."""

    def __init__(self) -> None:
        self._rates: list[Tensor] = []

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
        modulator = modulator_of(net.module_)
        if training and modulator is not None and modulator.rates is not None:
            self._rates.append(modulator.rates.mean())

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Write the mean rate of the epoch."""
        if self._rates:
            net.history.record("sacm_rate_mean", float(torch.stack(self._rates).mean()))
            self._rates.clear()
