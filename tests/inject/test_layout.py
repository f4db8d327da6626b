from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sacm import ArgumentError, SiteLayout
from sacm.core.dropout import Keep


@pytest.mark.parametrize(
    ("layout", "text", "owners"),
    [
        (SiteLayout(1), "dim 1 = B", [0, 1]),
        (SiteLayout(0, 2), "dim 0 = B*2", [0, 0, 1, 1]),
        (SiteLayout(0, 2, batch_major=False), "dim 0 = 2*B", [0, 1, 0, 1]),
    ],
)
def test_a_layout_in_words_and_in_owners(layout: SiteLayout, text: str, owners: list[int]) -> None:
    assert str(layout) == text
    assert layout.owners(2).tolist() == owners


@pytest.mark.parametrize("arguments", [(-1,), (0, 0)])
def test_impossible_layouts_are_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError, match="dim >= 0 and fold >= 1"):
        SiteLayout(*arguments)


@given(st.integers(0, 2), st.integers(1, 4), st.booleans())
def test_each_window_drops_at_its_own_rate_alone(dim: int, fold: int, major: bool) -> None:
    torch.manual_seed(0)
    layout = SiteLayout(dim, fold, batch_major=major)
    shape = [4, 5, 6]
    shape[dim] = 3 * fold
    h = torch.rand(shape) + 1
    out = layout.drop(h, Keep.of(torch.tensor([1.0, 0.5, 1e-4])))
    rows, dropped = h.movedim(dim, 0), out.movedim(dim, 0)
    owners = layout.owners(3)
    assert torch.equal(dropped[owners == 0], rows[owners == 0])
    kept = dropped[owners == 1] != 0
    torch.testing.assert_close(dropped[owners == 1], torch.where(kept, 2 * rows[owners == 1], 0.0))
    assert (dropped[owners == 2] == 0).double().mean() > 0.9
