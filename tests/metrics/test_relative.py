from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.metrics.relative import RelativeErrors, naive_training_error


def test_the_three_measures_are_their_formulas() -> None:
    generator = np.random.default_rng(0)
    mean, std = np.array([3.0, -2.0]), np.array([2.0, 0.5])
    truth, forecast = generator.normal(size=(2, 6, 4, 2))
    seen = generator.random((6, 4, 2)) > 0.3
    naive = np.array([0.7, 0.2])
    errors = RelativeErrors(mean=mean, std=std, naive_error=naive)
    for part in (slice(0, 2), slice(2, 6)):  # whatever the batches
        errors.update(
            torch.from_numpy(forecast[part]),
            torch.from_numpy(truth[part]),
            observed=torch.from_numpy(seen[part]),
        )
    found = errors.compute()
    mase, smape, wape = [], [], []
    for channel in range(2):
        keep = seen[:, :, channel]
        y = (truth[:, :, channel] * std[channel] + mean[channel])[keep]
        f = (forecast[:, :, channel] * std[channel] + mean[channel])[keep]
        mase.append(np.abs(y - f).mean() / naive[channel])
        smape.append((2 * np.abs(y - f) / (np.abs(y) + np.abs(f))).mean())
        wape.append(np.abs(y - f).sum() / np.abs(y).sum())
    assert found["mase"] == pytest.approx(np.mean(mase))
    assert found["smape"] == pytest.approx(np.mean(smape))
    assert found["wape"] == pytest.approx(np.mean(wape))


def test_a_channel_that_never_changes_has_no_mase_and_zeros_no_wape() -> None:
    zeros = torch.zeros(2, 3, 1)
    errors = RelativeErrors(mean=np.zeros(1), std=np.ones(1), naive_error=np.zeros(1))
    errors.update(zeros, zeros)
    assert errors.compute() == {"mase": None, "smape": 0.0, "wape": None}


def test_the_naive_training_error_stays_inside_each_series() -> None:
    pieces = [np.array([[0.0], [1.0], [4.0]]), np.array([[100.0], [101.0]]), np.array([[7.0]])]
    assert naive_training_error(pieces, 1) == pytest.approx([(1 + 3 + 1) / 3])
    assert naive_training_error(pieces, 2) == pytest.approx([4.0])
