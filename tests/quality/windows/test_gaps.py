"""Gaps are filled at the level at which a channel stands, wherever its neighbours are."""

from __future__ import annotations

import pytest
import torch

from sacm.quality.windows.gaps import draw_lines, fill_window_gaps
from sacm.quality.windows.module import WindowGuard
from tests.quality.windows.rows import LENGTH, broken_windows, guard, windows


@pytest.mark.parametrize("moved", [[0], [1, 2]])
def test_a_gap_is_filled_at_a_level_that_training_never_showed(moved: list[int]) -> None:
    own = guard()
    z = (windows() - own.mean) / own.scale
    z[:, :, moved] += 3.0
    bad = torch.zeros_like(z, dtype=torch.bool)
    bad[:, 12:, 0] = True
    quiet, lines = torch.zeros(len(z), 3), draw_lines(z, bad)
    errors = [
        (fill_window_gaps(model, quiet, lines, bad, bad) - z)[:, 12:, 0].abs().mean()
        for model in (own.filling, own.model)
    ]
    assert errors[0] < 0.7 * errors[1]


def test_a_guard_of_an_earlier_version_fills_with_its_only_model() -> None:
    own = guard()
    config = own.config()
    config["parts"] = [name for name in config["parts"] if name != "filling"]
    state = {k: v for k, v in own.state_dict().items() if not k.startswith("filling.")}
    loaded = WindowGuard.load(config, state)
    assert loaded.filling is loaded.model
    assert loaded(broken_windows()).isfinite().all()
    assert loaded(broken_windows()).shape[1] == LENGTH
