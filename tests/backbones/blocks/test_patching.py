from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from sacm.backbones.blocks.embedding import count_patches, cut_patches, repeat_last


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
