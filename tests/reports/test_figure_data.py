from __future__ import annotations

import numpy as np
import pytest
import torch

from sacm.core.mapper import RateMapper
from sacm.core.scorer import SpectralScorer
from sacm.files import read_weights
from sacm.reports import figure_data
from sacm.tasks.anomaly import step_scores
from sacm.training.run import Run


def runs_of(case, seed=1):
    found = case.comparison
    return {s: Run.load(found.run(s, seed).folder) for s in found.strategies}


def test_rates_are_those_of_the_trained_scorer_and_mapper(cases):
    case = cases["forecasting"]
    run = runs_of(case)["sacm"]
    sample = figure_data.rate_sample(run, case.data)
    assert sample.learned
    windows = run.task.windows(run.settings, case.data).train
    size = run.settings.batch_size
    assert len(sample.scores) == len(windows) // size * size
    # The same by hand: the first batch of the first epoch, through modules with those weights.
    weights = read_weights(run.folder / "best.safetensors")
    scorer, mapper = SpectralScorer(2), RateMapper()
    for name, module in (("scorer", scorer), ("mapper", mapper)):
        for key, value in module.state_dict().items():
            value.copy_(weights[f"sacm_modulator.{name}.{key}"])
    first = torch.from_numpy(np.sort(sample.scores[:size]))
    scores = scorer(windows.batch(np.arange(len(windows))).x).scores.detach()
    assert all(torch.isclose(scores, each, atol=1e-6).any() for each in first)
    with torch.no_grad():
        rates = mapper(torch.from_numpy(sample.scores[:size]))
    np.testing.assert_allclose(sample.rates[:size], rates.numpy(), atol=1e-6)
    assert not torch.equal(scorer.bias, torch.zeros(2))


def test_kept_and_left_add_up(cases):
    case = cases["forecasting"]
    sample = figure_data.rate_sample(runs_of(case)["sacm"], case.data)
    for view in (sample.reliable, sample.unreliable):
        assert view.values.shape == view.kept.shape == (12,)
        assert view.amplitude.shape == view.mask.shape == (7,)
        assert ((view.mask >= 0) & (view.mask <= 1)).all()
    assert sample.unreliable.score == pytest.approx(sample.scores.max())
    assert sample.reliable.score < np.quantile(sample.scores, 0.2)
    assert sample.unreliable.channel == sample.reliable.channel == "noisy"


def test_windows_that_do_not_move_are_passed_over():
    time = np.arange(64.0)
    flat, wave = np.zeros(64), np.sin(time / 3)
    wild = wave + np.random.default_rng(0).normal(size=64)
    windows = torch.from_numpy(np.stack([flat, wild, wave]))[:, :, None]
    with torch.no_grad():
        most, least = figure_data._ends(SpectralScorer(1), windows, ("a",))
    np.testing.assert_allclose(most.values, wave)
    np.testing.assert_allclose(least.values, wild)


def test_a_raw_run_is_scored_by_a_fresh_scorer(cases):
    case = cases["forecasting"]
    run = runs_of(case)["raw"]
    sample = figure_data.rate_sample(run, case.data)
    assert not sample.learned
    windows = run.task.windows(run.settings, case.data).train
    fresh = SpectralScorer(2)(windows.batch(np.arange(len(windows))).x).scores.detach()
    assert sample.scores.max() <= float(fresh.max()) + 1e-6
    assert sample.scores.min() >= float(fresh.min()) - 1e-6


def test_forecast_examples_are_rows_of_the_data(cases):
    case = cases["forecasting"]
    examples, looked_at = figure_data.forecast_examples(runs_of(case), case.data)
    assert looked_at == 40 - 12 - 6 + 1
    gains = [e.errors["raw"] - e.errors["sacm"] for e in examples]
    assert gains == sorted(gains, reverse=True)
    test_rows = case.data.values[160:]
    scale = case.data.values[:120].std(axis=0)
    for example in examples:
        channel = case.data.columns.index(example.channel)
        whole = np.concatenate([example.history, example.truth])
        stretches = np.lib.stride_tricks.sliding_window_view(test_rows[:, channel], 18)
        assert np.isclose(stretches, whole, atol=1e-3).all(axis=1).any()
        for strategy, forecast in example.forecasts.items():
            error = np.abs(forecast - example.truth).mean() / scale[channel]
            assert example.errors[strategy] == pytest.approx(error, rel=1e-3)


def test_confusions_count_every_case_of_every_seed(cases):
    case = cases["classification"]
    runs = [Run.load(case.comparison.run("raw", seed).folder) for seed in (1, 2)]
    counts = figure_data.confusion(runs)
    assert counts.sum() == 2 * 8
    right = [run.row["accuracy"] * 8 for run in runs]
    assert np.trace(counts) == pytest.approx(sum(right))


def test_the_strip_is_the_segment_with_most_anomalies(cases):
    case = cases["anomaly"]
    runs = runs_of(case)
    strip = figure_data.anomaly_strip(runs, case.data)
    assert (strip.segment, strip.first_row, len(strip.labels)) == ("m2", 50, 70)
    run = runs["sacm"]
    windows = run.task.windows(run.settings, case.data).test
    model = run.load_model()
    everything = step_scores(model, windows, run.settings, run.strategy)
    np.testing.assert_allclose(strip.scores["sacm"], everything[50:], rtol=1e-5)
    assert strip.thresholds["sacm"] == run.metrics["report"]["threshold"]
