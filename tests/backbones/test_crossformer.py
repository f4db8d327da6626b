from __future__ import annotations

import torch

from sacm import backbones
from sacm.backbones.crossformer import SMALL, Merge, SegmentEmbedding, TwoStageBlock


def crossformer(**settings: int) -> backbones.Backbone:
    torch.manual_seed(0)
    sizes = {"input_len": 96, "horizon": 24, "channels": 3, **settings}
    return backbones.build("Crossformer", "forecasting", size="small", **sizes).eval()


def test_padding_repeats_the_first_value_in_front() -> None:
    embedding = SegmentEmbedding(SMALL, input_len=20, channels=1)
    seen: list[torch.Tensor] = []
    embedding.embed.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    embedding(torch.arange(20.0)[None, :, None])
    assert seen[0].flatten().tolist() == [0.0] * 12 + list(range(20))


def test_merge_joins_neighbours_and_repeats_an_odd_last() -> None:
    merge = Merge(4, 2)
    grid = torch.randn(2, 3, 5, 4)
    padded = torch.cat((grid, grid[:, :, -1:]), dim=2)
    expected = torch.stack(
        [
            merge.project(merge.norm(torch.cat((padded[:, :, 2 * n], padded[:, :, 2 * n + 1]), -1)))
            for n in range(3)
        ],
        dim=2,
    )
    torch.testing.assert_close(merge(grid), expected)


@torch.no_grad()
def test_two_stage_block_window_by_window() -> None:
    torch.manual_seed(0)
    block = TwoStageBlock(SMALL, segments=4).eval()
    grid = torch.randn(3, 5, 4, SMALL.width)
    expected = torch.zeros_like(grid)
    for b in range(3):
        rows = block.time(grid[b])  # [C, N, d]
        for n in range(4):
            column = rows[:, n][None]  # [1, C, d]
            messages = block.sender(block.routers[n][None], column)
            expected[b, :, n] = block.receiver(column, memory=messages)[0]
    torch.testing.assert_close(block(grid), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_forecast_is_the_sum_over_the_scales() -> None:
    model = crossformer()
    x = torch.randn(2, 96, 3)
    whole = model(x)
    parts = []
    for kept in range(3):
        heads = [layer.head for layer in model.decoder]
        before = [head.state_dict() for head in heads]
        before = [{k: v.clone() for k, v in state.items()} for state in before]
        for i, head in enumerate(heads):
            if i != kept:
                head.weight.zero_()
                head.bias.zero_()
        parts.append(model(x))
        for head, state in zip(heads, before, strict=True):
            head.load_state_dict(state)
    torch.testing.assert_close(sum(parts), whole, atol=1e-5, rtol=1e-5)
