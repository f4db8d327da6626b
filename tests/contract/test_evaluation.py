"""Channels that a network keeps apart, and compiled networks."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from sacm.backbones.registry import entry

from .cases import Case, assert_close, cases, make, windows

CHANNEL_INDEPENDENT = [
    entry("PatchTST", "forecasting"),
    entry("TimeMixer", "forecasting"),
    entry("WPMixer", "forecasting"),
    entry("PatchTST", "anomaly"),
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


# Native code takes minutes to build for all of them (set SACM_COMPILE_ALL to do it at night); the
# graph of each is traced all the same. The first is built in every run of the tests.
NATIVE = [
    "iTransformer-forecasting",
    "WPMixer-forecasting",
    "MiniROCKET-classification",
    "TimesNet-anomaly",
]


def compilations() -> list[Any]:
    """Networks and how they are compiled."""
    found = []
    for case in cases():
        name = str(case)
        if name in NATIVE or "SACM_COMPILE_ALL" in os.environ:
            marks = () if name == NATIVE[0] else pytest.mark.nightly
            found.append(pytest.param(case, "inductor", id=f"{name}-native", marks=marks))
        marks = () if name in NATIVE[1:] else pytest.mark.nightly
        # Torch's aot_eager takes its convolutions to be laid out in memory as they are not.
        traced = "eager" if name == "WPMixer-forecasting" else "aot_eager"
        found.append(pytest.param(case, traced, id=f"{name}-traced", marks=marks))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # raised by the compiler
@pytest.mark.filterwarnings("ignore:Torchinductor does not support:UserWarning")
@pytest.mark.parametrize(("case", "backend"), compilations())
def test_compiled_output_is_the_same(case: Case, backend: str) -> None:
    model = make(case).eval()
    x = windows(2)
    torch.compiler.reset()
    compiled = torch.compile(model, backend=backend)
    with torch.no_grad():
        expected, found = tree_leaves(model(x)), tree_leaves(compiled(x))
    assert_close(found, expected, tolerance=1e-5)
