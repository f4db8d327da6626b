"""What adapters around a forecasting network share."""

from __future__ import annotations

from torch import Tensor

from sacm.backbones.base import Backbone, ForecastNetwork
from sacm.inject.layout import SiteLayout


class NetworkAdapter(ForecastNetwork):
    """A forecasting network around another one, of the same lengths and channels."""

    def __init__(self, network: ForecastNetwork) -> None:
        super().__init__(
            input_len=network.input_len, horizon=network.horizon, channels=network.channels
        )
        self.network = network
        self.sacm_layouts = prefix_layouts(network, "network")

    @property
    def prepares(self) -> bool:
        """Whether the network does."""
        return self.network.prepares

    def prepare(self, train_x: Tensor) -> None:
        """Prepare the network."""
        self.network.prepare(train_x)

    def set_epoch(self, epoch: int) -> None:
        """Tell the network."""
        self.network.set_epoch(epoch)

    def auxiliary_loss(self) -> Tensor:
        """That of the network."""
        return self.network.auxiliary_loss()


def prefix_layouts(network: Backbone, prefix: str) -> dict[str, SiteLayout]:
    """The layouts that a network states, by the names of its sites in a larger one."""
    return {f"{prefix}.{name}": layout for name, layout in network.sacm_layouts.items()}
