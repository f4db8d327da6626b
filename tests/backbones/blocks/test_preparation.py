from __future__ import annotations

import pytest
import torch
from torch import nn

from sacm.backbones.base import require_fitted
from sacm.errors import ArgumentError


class Fitted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("low", torch.full((3,), torch.nan))


def test_refuses_until_every_value_is_filled() -> None:
    module = Fitted()
    with pytest.raises(ArgumentError, match=r"Fitted has seen no training data: call prepare"):
        require_fitted(module, module.low)
    module.low[:2] = 1.0
    with pytest.raises(ArgumentError, match="prepare"):
        require_fitted(module, module.low)
    module.low[2] = 1.0
    require_fitted(module, module.low)


def test_a_loaded_checkpoint_counts_as_fitted() -> None:
    source, target = Fitted(), Fitted()
    source.low.fill_(2.0)
    target.load_state_dict(source.state_dict())
    require_fitted(target, target.low)
    assert torch.equal(target.low, source.low)
