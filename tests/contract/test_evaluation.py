"""Channels that a network keeps apart, and compiled networks."""

from __future__ import annotations

import os

import pytest
import torch

from .cases import Case, assert_close, cases, flatten, make, windows

CHANNEL_INDEPENDENT = [
    Case("PatchTST", "forecasting"),
    Case("TimeMixer", "forecasting"),
    Case("WPMixer", "forecasting"),
    Case("PatchTST", "anomaly"),
]


@pytest.mark.parametrize("case", CHANNEL_INDEPENDENT, ids=str)
def test_channels_do_not_mix(case: Case) -> None:
    model = make(case).eval()
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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # raised by the compiler
@pytest.mark.filterwarnings("ignore:Torchinductor does not support:UserWarning")
@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=() if str(c) in NATIVE else pytest.mark.nightly) for c in cases()],
    ids=str,
)
def test_compiled_output_is_the_same(case: Case) -> None:
    model = make(case).eval()
    x = windows(2)
    torch.compiler.reset()
    native = str(case) in NATIVE or "SACM_COMPILE_ALL" in os.environ
    compiled = torch.compile(model, backend="inductor" if native else "aot_eager")
    with torch.no_grad():
        expected, found = list(flatten(model(x))), list(flatten(compiled(x)))
    assert_close(found, expected, tolerance=1e-5)
