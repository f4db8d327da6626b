"""The worked numbers of the method, stage by stage, in both precisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from sacm import RateMapper, SACMConfig, SpectralScorer
from sacm.core.scorer import ScorerOutput

GOLDEN = json.loads((Path(__file__).parents[1] / "fixtures/golden_method.json").read_text())
STAGES = ("sfm", "threshold", "mask", "reconstruction", "channel_scores", "scores")

every_case = pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
both_precisions = pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-8)]
)


def run(case: dict[str, Any], dtype: torch.dtype) -> tuple[ScorerOutput, Tensor]:
    """Scorer output and rates of one case; learnable values are set in the precision asked for."""
    params = case["params"]
    config = SACMConfig(
        detrend=params.get("how", "ols"),
        log_norm=params.get("log_norm", True),
        sfm_anchor=params.get("sfm_anchor", True),
        p_min=params.get("p_min", 0.05),
        p_max=params.get("p_max", 0.50),
    )
    x = torch.tensor(case["x"], dtype=dtype)
    scorer, mapper = SpectralScorer(x.shape[2], config).to(dtype), RateMapper(config).to(dtype)
    moved = {"w_s": scorer.weight, "b_s": scorer.bias, "alpha": scorer.alpha, "gamma": mapper.gamma}
    with torch.no_grad():
        for name, parameter in moved.items():
            if name in params:
                parameter.copy_(torch.tensor(params[name], dtype=dtype))
        out = scorer(x)
        return out, mapper(out.scores)


@every_case
@both_precisions
def test_every_stage_matches_the_worked_numbers(
    case: dict[str, Any], dtype: torch.dtype, tolerance: float
) -> None:
    out, rates = run(case, dtype)
    assert rates.dtype == dtype
    for name, value in [*((stage, getattr(out, stage)) for stage in STAGES), ("rates", rates)]:
        expected = torch.tensor(case[name], dtype=dtype)
        assert value.shape == expected.shape, name
        difference = float((value - expected).abs().max())
        assert difference <= tolerance, f"{name}: off by {difference:.1e}"


def test_the_fixture_holds_every_kind_of_case() -> None:
    names = {case["name"] for case in GOLDEN["cases"]}
    assert len(names) == 11
    assert {"odd length", "batch of one", "length equals channels", "no SFM anchor"} <= names


def test_the_defaults_are_the_papers() -> None:
    config = SACMConfig()
    assert (config.p_min, config.p_max, config.alpha, config.gamma) == (0.05, 0.50, 10.0, 1.0)
    assert (config.sfm_weight, config.sfm_bias, config.eps) == (1.0, 0.0, 1e-8)
    assert (config.detrend, config.log_norm, config.sfm_anchor) == ("ols", True, True)


def test_settings_reach_the_learnable_values() -> None:
    config = SACMConfig(alpha=3.0, gamma=0.25, sfm_weight=1.5, sfm_bias=-0.5)
    scorer, mapper = SpectralScorer(4, config), RateMapper(config)
    assert scorer.weight.tolist() == [1.5] * 4
    assert scorer.bias.tolist() == [-0.5] * 4
    assert (scorer.alpha.item(), mapper.gamma.item()) == (3.0, 0.25)
    count = sum(p.numel() for p in [*scorer.parameters(), *mapper.parameters()])
    assert count == 2 * 4 + 2
