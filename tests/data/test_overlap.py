from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from sacm.data import OverlapMean


@given(
    rows=st.integers(5, 40),
    length=st.integers(1, 5),
    count=st.integers(1, 30),
    seed=st.integers(0, 100),
    batch=st.integers(1, 7),
)
def test_equals_a_loop_over_windows_and_steps(rows, length, count, seed, batch):
    random = np.random.default_rng(seed)
    starts = random.integers(0, rows - length + 1, count)
    scores = random.standard_normal((count, length)).astype(np.float32)
    seen: list[list[float]] = [[] for _ in range(rows)]
    for start, window in zip(starts, scores, strict=True):
        for step, score in enumerate(window):
            seen[start + step].append(float(score))
    expected = [np.mean(values) if values else np.nan for values in seen]
    mean = OverlapMean(rows)
    for first in range(0, count, batch):
        part = slice(first, first + batch)
        mean.update(torch.from_numpy(scores[part]), torch.from_numpy(starts[part]))
    np.testing.assert_allclose(mean.result().numpy(), expected, rtol=1e-12, atol=1e-14)


def test_a_step_that_no_window_covers_has_no_mean():
    mean = OverlapMean(4)
    mean.update(torch.ones(2, 2), torch.tensor([0, 1]))
    assert mean.result()[3].isnan()
    assert mean.covered().tolist() == [True, True, True, False]
