"""Generalised cross entropy between its two known limits."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from sacm_lab.rivals.gce import generalised_cross_entropy

LOGITS = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(50) % 4


def test_it_is_the_formula_of_the_paper() -> None:
    chance = LOGITS.softmax(dim=1)[torch.arange(50), LABELS]
    found = generalised_cross_entropy(LOGITS, LABELS, 0.7)
    torch.testing.assert_close(found, (1 - chance**0.7) / 0.7)


def test_its_limits_are_cross_entropy_and_absolute_error() -> None:
    near_zero = generalised_cross_entropy(LOGITS, LABELS, 1e-5)
    torch.testing.assert_close(
        near_zero, F.cross_entropy(LOGITS, LABELS, reduction="none"), rtol=1e-3, atol=1e-3
    )
    one_hot = F.one_hot(LABELS, 4)
    absolute = (LOGITS.softmax(dim=1) - one_hot).abs().sum(dim=1) / 2
    torch.testing.assert_close(generalised_cross_entropy(LOGITS, LABELS, 1.0), absolute)
