from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from sacm.core.dropout import draw_random_words

CPU = torch.device("cpu")
# Below and above the size from which another generator takes over.
SIZES = pytest.mark.parametrize("count", [4_000, 40_000], ids=["small", "large"])


@SIZES
@pytest.mark.parametrize("stream", [0, 1, 5])
def test_every_bit_is_fair(count: int, stream: int) -> None:
    torch.manual_seed(0)
    words = draw_random_words(count, CPU, stream=stream).numpy().view(np.uint64)
    for bit in range(64):
        share = float(((words >> np.uint64(bit)) & np.uint64(1)).mean())
        assert abs(share - 0.5) <= 4.5 * 0.5 / math.sqrt(count), bit


@SIZES
def test_the_generators_state_moves_on(count: int) -> None:
    torch.manual_seed(0)
    assert not torch.equal(draw_random_words(count, CPU), draw_random_words(count, CPU))


@SIZES
def test_streams_that_share_a_seed_are_independent(count: int) -> None:
    """The kept shares of two ranks must agree no more often than chance has it."""
    uniforms = []
    for stream in range(8):
        torch.manual_seed(0)
        words = draw_random_words(count, CPU, stream=stream)
        uniforms.append(words.view(torch.int16).double() / 65536 + 0.5)
    for first, second in itertools.combinations(uniforms, 2):
        for keep in (0.5, 0.95):
            pair = torch.stack([first < keep, second < keep]).double()
            correlation = float(torch.corrcoef(pair)[0, 1])
            assert abs(correlation) <= 5 / math.sqrt(4 * count)
