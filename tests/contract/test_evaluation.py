"""In evaluation a window's result depends on that window and on nothing else."""

from __future__ import annotations

import copy
import os

import pytest
import torch

from .cases import (
    CALENDAR,
    WITH_CALENDAR,
    Case,
    assert_close,
    cases,
    evaluate,
    every_case,
    every_forecaster,
    flatten,
    make,
    shared,
    windows,
)

CHANNEL_INDEPENDENT = [
    Case("PatchTST", "forecasting"),
    Case("TimeMixer", "forecasting"),
    Case("WPMixer", "forecasting"),
    Case("PatchTST", "anomaly"),
]


@every_case
def test_a_window_alone_and_in_a_batch(case: Case) -> None:
    model = shared(case)
    x = windows(7)
    together = evaluate(model, x)
    for i in (0, 3, 6):
        alone = evaluate(model, x[i : i + 1])
        assert_close(alone, [output[i : i + 1] for output in together], tolerance=1e-5)


@every_case
def test_evaluation_is_repeatable(case: Case) -> None:
    model = shared(case)
    x = windows(3)
    assert_close(evaluate(model, x), evaluate(model, x), tolerance=0.0)


@every_case
def test_input_is_left_alone(case: Case) -> None:
    model = shared(case)
    x = windows(3)
    before = x.clone()
    evaluate(model, x)
    assert torch.equal(x, before)


@every_case
def test_state_dict_round_trip(case: Case) -> None:
    model = make(case, seed=0)
    other = make(case, seed=1, prepare=False)
    other.load_state_dict(model.state_dict(), strict=True)
    x = windows(3)
    assert_close(evaluate(other, x), evaluate(model, x), tolerance=0.0)


@every_case
def test_deepcopy_is_independent(case: Case) -> None:
    model = shared(case)
    x = windows(3)
    before = evaluate(model, x)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1.0)
    assert_close(evaluate(model, x), before, tolerance=0.0)
    assert twin.sacm_layouts == model.sacm_layouts


@every_forecaster
def test_forecast_never_reads_beyond_the_window(case: Case) -> None:
    series = windows(3, length=96 + 24)
    poisoned = series.clone()
    poisoned[:, 96:] = float("nan")  # the views below share its memory
    model = make(case)
    for training in (True, False):
        forecasts = []
        for source in (series, poisoned):
            model.train(training)
            torch.manual_seed(0)
            with torch.no_grad():
                forecasts.append(copy.deepcopy(model)(source[:, :96]))
        assert torch.equal(*forecasts)


@pytest.mark.parametrize(
    "case", [c for c in cases("forecasting") if c.name in WITH_CALENDAR], ids=str
)
def test_calendar_is_used_and_is_all_that_stamps_carry(case: Case) -> None:
    model = make(case, calendar_sizes=CALENDAR)
    x = windows(2)
    stamps = torch.rand(2, 96 + 24, 4, generator=torch.Generator().manual_seed(0))
    forecast = evaluate(model, x, stamps)[0]
    moved = stamps.clone()
    moved[0, :96] = (moved[0, :96] + 0.5) % 1
    other = evaluate(model, x, moved)[0]
    assert (forecast[0] - other[0]).abs().max() > 1e-4
    torch.testing.assert_close(forecast[1], other[1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", CHANNEL_INDEPENDENT, ids=str)
def test_channels_do_not_mix(case: Case) -> None:
    model = shared(case).eval()
    x = windows(2)
    changed = x.clone()
    changed[:, :, 1] += windows(2, seed=5)[:, :, 0]
    with torch.no_grad():
        difference = (model(x) - model(changed)).abs().amax(dim=(0, 1))  # [C]
    assert difference[1] > 1e-3
    assert difference[[0, 2]].max() < 1e-6


# Native code takes minutes to build for all of them (set SACM_COMPILE_ALL to do it); the graph of
# each is traced all the same.
NATIVE = [
    "iTransformer-forecasting",
    "WPMixer-forecasting",
    "MiniROCKET-classification",
    "TimesNet-anomaly",
]


@pytest.mark.compile
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # raised by the compiler
@pytest.mark.filterwarnings("ignore:Torchinductor does not support:UserWarning")
@every_case
def test_compiled_output_is_the_same(case: Case) -> None:
    model = shared(case).eval()
    x = windows(2)
    torch.compiler.reset()
    native = str(case) in NATIVE or "SACM_COMPILE_ALL" in os.environ
    compiled = torch.compile(model, backend="inductor" if native else "aot_eager")
    with torch.no_grad():
        expected, found = list(flatten(model(x))), list(flatten(compiled(x)))
    assert_close(found, expected, tolerance=1e-5)
