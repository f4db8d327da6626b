"""Intervals: conformal ranks, coverage, widths, and the same numbers on every road."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sacm import Forecaster, Predictor
from sacm.errors import ArgumentError
from sacm.tasks.calibration import ErrorQuantiles
from tests.cli.conftest import Command, sacm

__all__ = ["sacm"]  # the fixture
TINY = {
    "size": "small",
    "epochs": 2,
    "strategy": "raw",
    "input_len": 24,
    "horizon": 6,
    "learning_rate": 1e-3,
}


def normal(count: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=(count, 3, 2))


def series(rows: int = 2400) -> pd.DataFrame:
    """Two waves, the second under more noise."""
    time = np.arange(rows)[:, None]
    noise = np.random.default_rng(0).normal(size=(rows, 2)) * [0.3, 1.0]
    values = 20 + np.sin(2 * np.pi * time / [12, 24]) + noise
    stamps = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame(values, columns=["load", "heat"]).assign(date=stamps)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return series()


@pytest.fixture(scope="module")
def fitted(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Forecaster:
    folder = tmp_path_factory.mktemp("runs")
    return Forecaster("iTransformer", folder=folder, **TINY).fit(table[:1600])


def test_quantiles_are_the_ranks_that_conformal_prediction_asks_for() -> None:
    residuals = np.random.default_rng(0).permutation(np.arange(1.0, 20))[:, None, None]
    errors = ErrorQuantiles.fit(residuals)
    assert [errors.offset(level).item() for level in (0.1, 0.5, 0.9)] == [2.0, 10.0, 18.0]
    assert errors.offset(0.899).item() == 18.0  # between two stored levels the outer one
    assert errors.offset(0.101).item() == 2.0


@given(
    count=st.integers(20, 200), level=st.sampled_from([0.05, 0.2, 0.8, 0.95]), seed=st.integers(0)
)
def test_the_share_below_a_quantile_is_as_promised(count: int, level: float, seed: int) -> None:
    """Over all splits into n and one, the share below is at least the level, or at most."""
    residuals = np.random.default_rng(seed).normal(size=count + 1)
    below = np.mean(
        [
            each <= ErrorQuantiles.fit(np.delete(residuals, i)[:, None, None]).offset(level).item()
            for i, each in enumerate(residuals)
        ]
    )
    slack = 2 / (count + 1)
    assert level - (0 if level > 0.5 else slack) - 1e-6 <= below
    assert below <= level + (slack if level > 0.5 else 0) + 1e-6


def test_what_was_not_measured_does_not_count() -> None:
    residuals = normal(200)
    residuals[:100, 0, 0] = np.nan
    errors = ErrorQuantiles.fit(residuals)
    assert errors.windows == 100
    measured = np.sort(residuals[100:, 0, 0])
    assert errors.offset(0.9)[0, 0, 0] == pytest.approx(measured[int(np.ceil(101 * 0.9)) - 1])


def test_too_few_windows_for_a_level_are_refused() -> None:
    errors = ErrorQuantiles.fit(normal(30))
    with pytest.raises(ArgumentError, match="needs 39 calibration windows but the run has 30"):
        errors.offset(0.975)
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        errors.offset(1.2)


def test_quiet_and_restless_windows_are_each_covered() -> None:
    moves = np.where(np.arange(4000) % 2, 2.0, 0.5)[:, None]
    noise = np.random.default_rng(0).normal(size=(4000, 3, 1)) * moves[:, None]
    errors = ErrorQuantiles.fit(noise[:2000], moves=moves[:2000])
    low, high = (errors.offset(level, moves=moves[2000:]) for level in (0.1, 0.9))
    inside = (noise[2000:] >= low) & (noise[2000:] <= high)
    for restless in (0, 1):
        assert inside[restless::2].mean() == pytest.approx(0.8, abs=0.04)
    alike = ErrorQuantiles.fit(noise[:2000])
    inside = (noise[2000:] >= alike.offset(0.1)) & (noise[2000:] <= alike.offset(0.9))
    assert inside[1::2].mean() < 0.75


def test_intervals_grow_without_limit_with_what_was_repaired() -> None:
    shares = np.repeat(np.where(np.arange(400) % 4 == 0, 0.5, 0.0)[:, None], 2, axis=1)
    residuals = normal(400) * (1 + (shares / (1 - shares))[:, None])
    errors = ErrorQuantiles.fit(residuals, shares=shares)
    widths = [
        errors.offset(0.9, shares=np.full((1, 2), share)).mean() for share in (0, 0.5, 0.9, 0.99)
    ]
    assert widths[1] == pytest.approx(2 * widths[0])
    assert widths[3] == pytest.approx(100 * widths[0])
    assert np.isinf(errors.offset(0.9, shares=np.ones((1, 2)))).all()
    plain = ErrorQuantiles.fit(normal(400))
    assert widths[0] == pytest.approx(plain.offset(0.9).mean(), rel=0.1)


def test_estimator_predictor_and_command_line_agree_exactly(
    fitted: Forecaster, table: pd.DataFrame, sacm: Command, tmp_path: Path
) -> None:
    new = table[1500:1700].reset_index(drop=True)
    new.to_csv("new.csv", index=False)
    new = pd.read_csv("new.csv", parse_dates=["date"])
    lower, upper = fitted.predict_interval(new, coverage=0.8)
    (run,) = (path for path in Path(str(fitted.folder)).iterdir() if path.is_dir())
    framed = Predictor.load(run).predict(new, intervals=[0.8])
    fitted.save(tmp_path / "saved")
    saved = Predictor.load(tmp_path / "saved").predict(new, intervals=[0.8])
    printed = sacm("predict", run, "--data", "new.csv", "--coverage", "0.8")
    assert printed.code == 0, printed.err
    assert "test windows of the run; wider where" in printed.err
    written = pd.read_csv(io.StringIO(printed.out))
    for name in ("load", "heat"):
        for bounds, kind in ((lower, "lower"), (upper, "upper")):
            expected, column = bounds[name].to_numpy(), f"{name}_{kind}_80"
            np.testing.assert_array_equal(framed[column], expected)
            np.testing.assert_array_equal(saved[column], expected)
            printable = [float(f"{value:.7g}") for value in expected]  # as many digits as it prints
            np.testing.assert_array_equal(written[column], printable)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_new_values_are_covered(fitted: Forecaster, table: pd.DataFrame, coverage: float) -> None:
    inside = []
    for end in range(1640, 2390, 6):
        lower, upper = fitted.predict_interval(table[end - 40 : end], coverage=coverage)
        truth = table[["load", "heat"]][end : end + 6].to_numpy()
        inside.append((truth >= lower[["load", "heat"]]) & (truth <= upper[["load", "heat"]]))
    assert np.mean(inside) == pytest.approx(coverage, abs=0.04)
    width = (upper - lower)[["load", "heat"]].mean()
    assert width["heat"] > 2 * width["load"]


def test_intervals_of_arrays_come_as_a_frame(fitted: Forecaster, table: pd.DataFrame) -> None:
    rows = table[["load", "heat"]].to_numpy()[1500:1700]
    framed = fitted.predictor_.predict(rows, intervals=[0.5, 0.8], quantiles=[0.25])
    plain = fitted.predictor_.predict(rows)
    np.testing.assert_allclose(framed[["load", "heat"]], plain, rtol=1e-6)
    assert (framed["load_upper_80"] > framed["load_upper_50"]).all()
    np.testing.assert_array_equal(framed["heat_q25"], framed["heat_lower_50"])
    with pytest.raises(ArgumentError, match="coverage must be between 0 and 1, got 80"):
        fitted.predict_interval(coverage=80)


def test_intervals_end_with_the_trained_horizon(fitted: Forecaster, table: pd.DataFrame) -> None:
    with pytest.raises(ArgumentError, match=r"for the 6 steps .* not for 7.*--horizon"):
        fitted.predictor_.predict(table, intervals=[0.8], horizon=7)
    short = fitted.predictor_.predict(table, intervals=[0.8], horizon=2)
    assert len(short) == 2
