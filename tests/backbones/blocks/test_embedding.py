from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from sacm.backbones.blocks.embedding import (
    Calendar,
    Positions,
    TokenConv,
    Tokens,
    count_patches,
    cut_patches,
    repeat_last,
)
from sacm.errors import ArgumentError


def test_token_conv_is_circular_over_time() -> None:
    torch.manual_seed(0)
    tokens, x = TokenConv(3, 8), torch.randn(2, 10, 3)
    before, after = x.roll(1, dims=1), x.roll(-1, dims=1)
    expected = sum(
        F.linear(part, tokens.weight[:, :, tap]) for tap, part in enumerate((before, x, after))
    )
    torch.testing.assert_close(tokens(x), expected)


def test_token_conv_starts_kaiming_normal_with_gain_root_two() -> None:
    torch.manual_seed(0)
    weight = TokenConv(16, 512).weight.detach()
    assert float(weight.std()) == pytest.approx(math.sqrt(2 / (16 * 3)), rel=0.02)


@given(st.integers(1, 40), st.integers(1, 16).map(lambda n: 2 * n))
def test_sinusoid_by_its_formula(length: int, width: int) -> None:
    table = Positions(length, width).table
    t, i = length - 1, 2 * ((width - 1) // 2)
    angle = t * 10000 ** (-i / width)
    assert table.shape == (length, width)
    assert float(table[t, i]) == pytest.approx(math.sin(angle), abs=1e-5)
    assert float(table[t, i + 1]) == pytest.approx(math.cos(angle), abs=1e-5)


def test_positions_count_from_zero_and_are_not_saved() -> None:
    positions = Positions(12, 8)
    torch.testing.assert_close(positions(torch.zeros(2, 5, 8)), positions.table[:5].expand(2, 5, 8))
    assert not positions.state_dict()


def test_odd_width_is_refused() -> None:
    with pytest.raises(ArgumentError, match="even width"):
        Positions(4, 7)


@given(st.integers(1, 2000), st.data())
def test_bins_of_exact_fractions(size: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, size - 1))
    calendar = Calendar((size,), 1)
    row = calendar(torch.tensor([[[k / size]]]))  # float32 may round k/size down
    assert torch.equal(row[0, 0], calendar.tables[0].weight[k])


def test_bins_outside_the_unit_interval_go_to_the_ends() -> None:
    calendar = Calendar((24,), 4)
    rows = calendar(torch.tensor([[[-0.2], [1.0], [7.0]]]))[0]
    assert torch.equal(rows, calendar.tables[0].weight[[0, 23, 23]])


def test_calendar_sums_one_row_of_each_table() -> None:
    calendar = Calendar((24, 7), 4)
    hour, day = calendar.tables
    found = calendar(torch.tensor([[[5 / 24, 6 / 7]]]))
    torch.testing.assert_close(found[0, 0], hour.weight[5] + day.weight[6])
    with pytest.raises(ArgumentError, match="at least 1"):
        Calendar((24, 0), 4)


def test_tokens_without_calendar_hold_no_tables() -> None:
    tokens = Tokens(3, SimpleNamespace(width=8, dropout=0.0), length=10)
    assert [name for name, _ in tokens.named_parameters()] == ["values.weight"]
    x = torch.randn(2, 10, 3)
    torch.testing.assert_close(tokens(x), tokens.values(x) + tokens.positions.table)


@given(st.integers(1, 60), st.integers(1, 12), st.data())
def test_patches_are_slices_of_the_extended_series(
    length: int, stride: int, data: st.DataObject
) -> None:
    patch = data.draw(st.integers(1, length + stride))
    x = torch.arange(float(length))
    found = cut_patches(x, patch=patch, stride=stride)
    extended = x.tolist() + [x[-1].item()] * stride
    assert len(found) == count_patches(length, patch=patch, stride=stride)
    for n, row in enumerate(found):
        assert row.tolist() == extended[n * stride : n * stride + patch]
    assert len(found) * stride + patch > length + stride  # no further patch would fit


def test_repeat_last_may_exceed_the_length() -> None:
    assert repeat_last(torch.tensor([[1.0, 2.0]]), 3).tolist() == [[1, 2, 2, 2, 2]]
