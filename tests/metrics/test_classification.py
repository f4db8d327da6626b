from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_f1_score

from sacm.errors import ArgumentError, SACMError
from sacm.metrics.classification import measure_classes


def sample(count=60, classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % classes
    logits = torch.randn(count, classes, generator=generator)
    return logits + torch.nn.functional.one_hot(labels, classes), labels


def test_hand_worked_case():
    logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    report = measure_classes(logits, torch.tensor([0, 0, 1, 1]))
    assert report.confusion == ((2, 0), (1, 1))
    assert report.accuracy == 0.75
    assert report.balanced_accuracy == 0.75
    assert report.macro_f1 == pytest.approx((4 / 5 + 2 / 3) / 2)
    right, wrong = math.log(1 + math.exp(-2)), math.log(1 + math.exp(2))
    assert report.nll == pytest.approx((3 * right + wrong) / 4)


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_torchmetrics(seed):
    logits, labels = sample(seed=seed)
    report = measure_classes(logits, labels)
    for value, average in ((report.accuracy, "micro"), (report.balanced_accuracy, "macro")):
        expected = multiclass_accuracy(logits, labels, num_classes=4, average=average)
        assert value == pytest.approx(float(expected), abs=1e-6)
    expected = multiclass_f1_score(logits, labels, num_classes=4, average="macro")
    assert report.macro_f1 == pytest.approx(float(expected), abs=1e-6)
    assert report.nll == pytest.approx(float(torch.nn.functional.cross_entropy(logits, labels)))
    assert np.trace(report.confusion) / report.samples == report.accuracy


def test_classes_that_never_occur_do_not_count():
    logits = torch.eye(5)[[0, 1, 2]]
    report = measure_classes(logits, torch.tensor([0, 1, 1]))
    assert report.balanced_accuracy == 0.75
    assert report.macro_f1 == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert len(report.confusion) == 5


def test_the_report_is_json():
    report = measure_classes(*sample())
    assert json.loads(json.dumps(asdict(report)))["accuracy"] == report.accuracy


def test_bad_input_is_refused():
    with pytest.raises(SACMError, match="no sample"):
        measure_classes(torch.zeros(0, 3), torch.zeros(0))
    with pytest.raises(ArgumentError, match=r"logits must be \[N, K\]"):
        measure_classes(torch.zeros(2, 3), torch.zeros(3))
    with pytest.raises(SACMError, match="sample 1, class 2"):
        measure_classes(torch.tensor([[0.0] * 3, [0.0, 0.0, math.nan]]), torch.tensor([0, 1]))
