"""Lightning callbacks that attach SACM to a network, or protect it with a guard.

trainer = lightning.Trainer(callbacks=[SACMCallback(channels=7, target="network")])
trainer = lightning.Trainer(callbacks=[ProtectCallback(guard, target="network")])

With both, put `ProtectCallback` first: SACM then scores the windows that the network gets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lightning.pytorch import LightningModule
from torch import nn

from sacm.core.config import SACMConfig
from sacm.inject.layout import SiteLayout
from sacm.inject.window_argument import InputArg, WindowLayout
from sacm.integrations.attached import WindowedNetwork
from sacm.integrations.network_callbacks import AttachCallback, GuardCallback


@dataclass(frozen=True)
class NamedNetwork:
    """Finds a network by its dotted name; "" is the LightningModule itself."""

    target: str
    channels: int
    input_arg: InputArg
    window_layout: WindowLayout

    def __call__(self, pl_module: LightningModule) -> WindowedNetwork | None:
        """Return the network if it exists yet."""
        try:
            found = pl_module.get_submodule(self.target)
        except AttributeError:
            return None
        # Before configure_model a network may be there as None, or without parameters.
        ready = isinstance(found, nn.Module) and any(p.requires_grad for p in found.parameters())
        return WindowedNetwork(found, *self._window()) if ready else None

    def _window(self) -> tuple[int, InputArg, WindowLayout]:
        return self.channels, self.input_arg, self.window_layout


class SACMCallback(AttachCallback):
    """Attaches before optimizers and checkpoints, and logs the mean dropout rate of every epoch.

    Checkpoints hold the modulator's scalars under `<target>.sacm_modulator`. To load one into the
    raw network, use `load_from_checkpoint(path, strict=False)` or `sacm.strip_state_dict`. In
    `configure_optimizers` the scalars are best given no weight decay.

    Args:
        channels: Number of channels of a window.
        target: The dotted name of the network inside the LightningModule whose forward takes the
            windows; "" for the LightningModule itself, if `training_step` calls `self(x)`. It may
            also be made in `configure_model`.
        config: Settings of the method.
        input_arg: The window among the arguments of forward.
        window_layout: Order of the dimensions of the window.
        coverage: As in `sacm.attach`, like all that follow.
        insert_after: Names or globs of modules whose output shall drop too.
        skip: Names or globs of dropout sites to leave ordinary.
        site_layouts: Layout by site name or glob.
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
        super().__init__(
            NamedNetwork(target, channels, input_arg, window_layout),
            config=config,
            coverage=coverage,
            insert_after=insert_after,
            skip=skip,
            site_layouts=site_layouts,
        )


class ProtectCallback(GuardCallback):
    """Protects a network of a LightningModule: windows are repaired before they reach it.

    Checkpoints stay those of the raw network and do not hold the guard: keep it with
    `guard.save(path)`.

    Args:
        guard: A `sacm.Guard` or `WindowGuard`, fitted in the units that the network is fed with.
        target: The dotted name of the network inside the LightningModule; "" for itself.
        input_arg: The window among the arguments of forward, by position, name or `WindowPath`.
        window_layout: Order of the dimensions of the window.
    """

    def __init__(
        self,
        guard: Any,
        *,
        target: str = "",
        input_arg: InputArg = 0,
        window_layout: WindowLayout = "BLC",
    ) -> None:
        super().__init__(NamedNetwork(target, 0, input_arg, window_layout), guard)
