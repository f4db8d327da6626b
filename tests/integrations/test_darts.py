from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sacm

darts = pytest.importorskip("darts", reason="needs the `integrations` extra")
from darts.models import TiDEModel  # noqa: E402  # after the check

from sacm.integrations.darts import WINDOW, SACMCallback  # noqa: E402

from .series import load_series  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the library's own
LENGTH = 24


def values() -> np.ndarray:
    return load_series(200, 2)


def model(*callbacks: Any, epochs: int = 4) -> Any:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return TiDEModel(
        LENGTH,
        6,
        hidden_size=8,
        dropout=0.2,
        n_epochs=epochs,
        batch_size=32,
        random_state=0,
        pl_trainer_kwargs={"callbacks": [*callbacks], "accelerator": "cpu", **quiet},
    )


def scalars(fitted: Any) -> np.ndarray:
    values = fitted.model.sacm_modulator.parameters()
    return np.concatenate([value.detach().numpy().ravel() for value in values])


def test_model_trains_saves_loads_and_resumes(tmp_path: Path) -> None:
    series = darts.TimeSeries.from_values(values())
    fitted = model(SACMCallback(coverage="all"))
    fitted.fit(series)
    learnt = scalars(fitted)
    assert all(site.adaptive for site in fitted.model.sacm_modulator.sites)
    assert not np.allclose(learnt, [1, 1, 0, 0, 10, 1], atol=1e-4)
    path = str(tmp_path / "model.pt")
    fitted.save(path)
    loaded = TiDEModel.load(path)
    assert not hasattr(loaded.model, "sacm_modulator")  # the raw network
    expected = fitted.predict(6).values()
    np.testing.assert_array_equal(loaded.predict(6).values(), expected)
    loaded.fit(series, epochs=5)  # one more than before
    assert abs(scalars(loaded) - [1, 1, 0, 0, 10, 1]).max() > 0


def test_protected_model_repairs_also_after_loading(tmp_path: Path) -> None:
    guard = sacm.Guard(window=LENGTH).fit(values())
    fitted = model(epochs=1)
    fitted.fit(darts.TimeSeries.from_values(values()))
    sacm.protect(fitted.model, guard, input_arg=WINDOW)
    broken = values()
    broken[-3] = 60.0
    path = str(tmp_path / "model.pt")
    fitted.save(path)
    loaded = TiDEModel.load(path)
    sacm.protect(loaded.model, guard, input_arg=WINDOW)
    for each in (fitted, loaded):
        healthy = each.predict(6, series=darts.TimeSeries.from_values(values())).values()
        answer = each.predict(6, series=darts.TimeSeries.from_values(broken)).values()
        assert abs(answer - healthy).max() < 1.0
