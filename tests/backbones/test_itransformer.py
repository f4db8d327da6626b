from __future__ import annotations

import torch

from sacm import backbones


@torch.no_grad()
def test_channels_in_another_order_give_the_same_forecasts_in_that_order() -> None:
    torch.manual_seed(0)
    model = backbones.build(
        "iTransformer", "forecasting", input_len=24, horizon=8, channels=5, size="small"
    ).eval()
    x, order = torch.randn(2, 24, 5), torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(model(x[:, :, order]), model(x)[:, :, order], atol=1e-5, rtol=1e-5)
