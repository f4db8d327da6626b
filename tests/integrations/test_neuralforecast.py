from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sacm
from sacm.errors import ArgumentError
from sacm.integrations.shared import repair_frame

nf_models = pytest.importorskip("neuralforecast.models", reason="needs the `integrations` extra")
from neuralforecast import NeuralForecast  # noqa: E402  # after the check that it is there

from sacm.integrations.neuralforecast import (  # noqa: E402
    SACMCallback,
    attach_forecaster,
    protect_forecaster,
)

from .series import load_series  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # the library's own
]
ROWS, STEPS, LENGTH = 120, 20, 16
QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}


def frame() -> pd.DataFrame:
    values = load_series(ROWS, 2)
    return pd.concat(
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.date_range("2024-01-01", periods=ROWS, freq="h"),
                "y": values[:, column].astype(np.float64),
            }
        )
        for column, name in enumerate("ab")
    )


def model(**options: Any) -> Any:
    layers = {"mlp_units": [[8, 8]] * 3, "dropout_prob_theta": 0.2}
    return nf_models.NHITS(h=4, input_size=LENGTH, max_steps=STEPS, **layers, **QUIET, **options)


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def fitted() -> Any:
    forecaster = NeuralForecast([model()], freq="h")
    attach_forecaster(forecaster)
    forecaster.fit(frame())
    return forecaster


def scalars(forecaster: Any) -> np.ndarray:
    values = forecaster.models[0].sacm_modulator.parameters()
    return np.concatenate([value.detach().numpy().ravel() for value in values])


def test_scalars_move_and_all_dropouts_are_adaptive(fitted: Any) -> None:
    modulator = fitted.models[0].sacm_modulator
    assert all(site.adaptive for site in modulator.sites)
    assert not np.allclose(scalars(fitted), [1.0, 0.0, 10.0, 1.0], atol=1e-4)


def test_saved_forecaster_predicts_the_same_and_trains_on(fitted: Any, tmp_path: Path) -> None:
    folder = str(tmp_path / "saved")
    fitted.save(folder)
    raw = NeuralForecast.load(folder)
    expected = fitted.predict()["NHITS"].to_numpy()
    assert not hasattr(raw.models[0], "sacm_modulator")
    np.testing.assert_array_equal(raw.predict()["NHITS"].to_numpy(), expected)

    attach_forecaster(raw)
    np.testing.assert_array_equal(raw.predict()["NHITS"].to_numpy(), expected)
    raw.fit(frame(), use_init_models=False)
    assert not np.array_equal(scalars(raw), scalars(fitted))


@pytest.mark.slow
def test_callback_among_the_arguments_and_cross_validation_work() -> None:
    forecaster = NeuralForecast([model(callbacks=[SACMCallback()])], freq="h")
    result = forecaster.cross_validation(frame(), n_windows=2, refit=True)
    assert len(result) == 2 * 2 * 4
    assert not np.allclose(scalars(forecaster), [1.0, 0.0, 10.0, 1.0], atol=1e-4)
    with pytest.raises(ArgumentError, match="has a SACMCallback already"):
        attach_forecaster(forecaster)


@pytest.mark.slow
def test_a_callback_in_the_config_attaches_every_trial_of_an_automatic_model() -> None:
    auto = pytest.importorskip("neuralforecast.auto")

    def settings(trial: Any) -> dict[str, Any]:
        rate = trial.suggest_float("dropout_prob_theta", 0.1, 0.3)
        small = {"input_size": LENGTH, "max_steps": 3, "mlp_units": [[8, 8]] * 3}
        return {**small, "dropout_prob_theta": rate, "callbacks": [SACMCallback()], **QUIET}

    choice = auto.AutoNHITS(h=4, config=settings, backend="optuna", num_samples=2)
    forecaster = NeuralForecast([choice], freq="h")
    with pytest.raises(ArgumentError, match="among the callbacks of its config"):
        attach_forecaster(forecaster)
    forecaster.fit(frame(), val_size=8)
    assert forecaster.models[0].model.sacm_modulator.rates is not None


def test_protected_forecaster_repairs_the_newest_rows(fitted: Any, tmp_path: Path) -> None:
    fitted.save(str(tmp_path / "saved"))
    forecaster = NeuralForecast.load(str(tmp_path / "saved"))
    broken = frame()
    broken.loc[broken.groupby("unique_id").cumcount() == ROWS - 3, "y"] = 60.0
    healthy = forecaster.predict(df=frame())["NHITS"].to_numpy()
    raw = forecaster.predict(df=broken)["NHITS"].to_numpy()
    protect_forecaster(forecaster, sacm.Guard(window=LENGTH).fit(frame()))
    repaired = forecaster.predict(df=broken)["NHITS"].to_numpy()
    assert abs(repaired - healthy).max() < 0.1 * abs(raw - healthy).max()


def test_guard_is_refused_where_windows_are_scaled() -> None:
    forecaster = NeuralForecast([model(scaler_type="standard")], freq="h")
    with pytest.raises(ArgumentError, match=r"scaler_type='standard'.*repair_frame"):
        protect_forecaster(forecaster, sacm.Guard(window=LENGTH).fit(frame()))


def test_repaired_frame_marks_what_was_broken() -> None:
    broken = frame().reset_index(drop=True)
    broken["covariate"] = 1
    broken.loc[40:60, "y"] = 30.0
    broken.loc[200, "y"] = np.nan
    mended = repair_frame(broken)
    marked = np.flatnonzero(mended["available_mask"] == 0)
    assert set(marked) >= {*range(40, 61), 200}
    healthy = mended["available_mask"] == 1
    pd.testing.assert_series_equal(mended["y"][healthy], broken["y"][healthy])
    assert mended["y"].abs().max() < 3
    assert list(mended.columns) == [*broken.columns, "available_mask"]
    with pytest.raises(ArgumentError, match="needs a pandas frame with the columns"):
        repair_frame(broken.drop(columns="ds"))
