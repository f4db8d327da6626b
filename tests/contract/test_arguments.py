"""Wrong names and sizes are refused in one sentence."""

from __future__ import annotations

import pytest

from sacm import backbones
from sacm.errors import ArgumentError


def test_unknown_names() -> None:
    with pytest.raises(ArgumentError, match="Did you mean 'PatchTST'"):
        backbones.build("PatchTTS", "forecasting", input_len=96, horizon=96, channels=7)
    with pytest.raises(ArgumentError, match="serves another task"):
        backbones.build("TranAD", "forecasting", input_len=96, horizon=96, channels=7)
    with pytest.raises(ArgumentError, match="unknown task"):
        backbones.names("regression")
    with pytest.raises(ArgumentError, match="unknown size"):
        backbones.build("PatchTST", "anomaly", input_len=96, channels=7, size="tiny")
    with pytest.raises(ArgumentError, match="needs horizon"):
        backbones.build("PatchTST", "forecasting", input_len=96, channels=7)
