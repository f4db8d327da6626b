from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sacm.errors import ArgumentError
from sacm.integrations.pypots import attach_model

from .libraries import import_library
from .series import cut_windows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the library's own
CHANNELS, LENGTH = 2, 16


def data() -> dict[str, np.ndarray]:
    windows = cut_windows(95, LENGTH, CHANNELS)
    windows[np.random.default_rng(1).random(windows.shape) < 0.1] = np.nan
    return {"X": windows}


def model(epochs: int = 2) -> Any:
    return import_library("pypots.imputation").SAITS(
        n_steps=LENGTH,
        n_features=CHANNELS,
        n_layers=1,
        d_model=8,
        n_heads=2,
        d_k=4,
        d_v=4,
        d_ffn=8,
        dropout=0.2,
        batch_size=8,
        epochs=epochs,
        device="cpu",
        verbose=False,
    )


def test_model_trains_saves_loads_and_trains_on(tmp_path: Path) -> None:
    fitted = model()
    modulator = attach_model(fitted)
    fitted.fit(data())
    learnt = modulator.scorer.weight.detach().clone()
    assert abs(learnt - 1).max() > 1e-5
    fitted.save(str(tmp_path / "saits.pypots"))
    expected = fitted.impute(data())

    again = model(epochs=1)
    loaded = attach_model(again)
    again.load(str(tmp_path / "saits.pypots"))
    assert (loaded.scorer.weight == learnt).all()
    np.testing.assert_array_equal(again.impute(data()), expected)
    again.fit(data())
    assert (loaded.scorer.weight != learnt).any()

    import sacm

    sacm.detach(fitted.model)
    np.testing.assert_array_equal(fitted.impute(data()), expected)


def test_a_model_without_a_network_is_refused() -> None:
    with pytest.raises(ArgumentError, match="LOCF has no network"):
        attach_model(import_library("pypots.imputation").LOCF())
