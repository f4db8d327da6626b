"""SACM in skorch: `NeuralNetRegressor(AttachedModule(Network, channels=3))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from sacm.core.config import SACMConfig
from sacm.inject.attach import attach
from sacm.inject.window import InputArg, WindowLayout
from sacm.integrations.shared import Coverage, WindowedNetwork


class AttachedModule:
    """Makes attached modules; skorch calls it like the class of a module.

    skorch makes its optimizer right after the module, so a callback would attach too late. Settings
    such as `module__hidden=8` reach the class itself. `save_params`, `load_params`, pickling and
    `sklearn.base.clone` work as before. The rates are in `net.module_.sacm_modulator.rates`.

    Args:
        module: The class of the network, or a function that makes it; one that returns
            `sacm.protect(network, guard)` repairs windows too.
        channels, config, input_arg, window_layout, coverage: As in `sacm.attach`.
    """

    def __init__(
        self,
        module: Callable[..., nn.Module],
        *,
        channels: int | None = None,
        config: SACMConfig | None = None,
        input_arg: InputArg = 0,
        window_layout: WindowLayout = "BLC",
        coverage: Coverage = "modules",
    ) -> None:
        self.module, self.config, self.coverage = module, config, coverage
        self.window = channels, input_arg, window_layout

    def __call__(self, **parameters: Any) -> nn.Module:
        """Make a network and attach to it."""
        network = self.module(**parameters)
        window = WindowedNetwork(network, *self.window)._asdict()
        attach(**window, config=self.config, coverage=self.coverage)
        return network
