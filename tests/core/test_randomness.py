from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from sacm.core.dropout import draw_random_words, mix_stream

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


@pytest.mark.parametrize("streams", [(0, 1), (1, 2), (1, 5), (3, 7)])
def test_streams_of_the_same_uniforms_are_uniform_and_independent(
    streams: tuple[int, int],
) -> None:
    torch.manual_seed(0)
    uniforms = torch.rand(200_000)
    one, other = (mix_stream(uniforms, stream) for stream in streams)
    for mixed in (one, other):
        assert 0 <= mixed.min() <= mixed.max() < 1
        counts = torch.histc(mixed, 64, 0, 1)
        expected = len(uniforms) / 64
        assert ((counts - expected) ** 2 / expected).sum() < 63 + 5 * (2 * 63) ** 0.5
    for share in (0.05, 0.3, 0.5, 0.9):
        both = ((one < share) & (other < share)).double().mean()
        spread = (share**2 * (1 - share**2) / len(uniforms)) ** 0.5
        assert (both - share**2).abs() < 5 * spread


def test_neighbouring_entries_stay_independent_in_a_stream() -> None:
    torch.manual_seed(0)
    mixed = mix_stream(torch.rand(200_000), 3)
    correlation = torch.corrcoef(torch.stack([mixed[:-1], mixed[1:]]))[0, 1]
    assert correlation.abs() < 5 / len(mixed) ** 0.5


def test_mixing_a_stream_is_a_permutation_of_the_24_bits() -> None:
    some = torch.arange(0, 2**24, 7, dtype=torch.float32) / 2**24
    assert mix_stream(some, 2).unique().numel() == some.numel()
    assert torch.equal(mix_stream(some, 0), some)
