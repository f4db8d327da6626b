"""The picture of what every strategy gains."""

from __future__ import annotations

import numpy as np
import pytest

from sacm.experiments.named.pairs import value_of
from sacm_lab.robust.gain_figure import gain_caption, gain_figure
from sacm_lab.robust.protocols import REFERENCES
from sacm_lab.robust.tables import places_of
from tests.lab.robust.conftest import Carried


def test_a_dot_is_the_mean_gain_of_a_place(protocol_t: Carried) -> None:
    findings = protocol_t.found.findings
    axes = gain_figure(protocol_t.found).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == len(names)
    for name, line in zip(names, dots, strict=True):
        expected = [
            np.mean(
                [
                    100 * (1 - value_of(group, name, "mse") / value_of(group, "raw", "mse"))
                    for group in groups
                ]
            )
            for _, groups in places_of(findings)
        ]
        assert np.asarray(line.get_xdata()) == pytest.approx(expected)


def test_references_come_last_and_the_best_strategy_first(protocol_t: Carried) -> None:
    axes = gain_figure(protocol_t.found).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    own = [name for name in names if name not in REFERENCES]
    assert names[: len(own)] == own
    means = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "|"]
    assert means[: len(own)] == sorted(means[: len(own)], reverse=True)
    assert all(name in gain_caption(protocol_t.found) for name in names)
