"""Functional and attention dropout under `coverage="all"`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode_stack

import sacm
from sacm.inject.sites import ModulationState, SiteLayout
from sacm.inject.stand_ins import StandIn, handle_attention

from . import models
from .models import CHANNELS, windows


def attached(model: nn.Module, **options: Any) -> sacm.CapacityModulator:
    return sacm.attach(
        model, **{"channels": CHANNELS, "coverage": "all", "example_inputs": windows(), **options}
    )


MASKS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "boolean": {"attn_mask": torch.ones(5, 7, dtype=torch.bool).tril(1)},
    "additive": {"attn_mask": torch.randn(5, 7, generator=torch.Generator().manual_seed(0))},
    "per head": {"attn_mask": torch.rand(2, 3, 5, 7) > 0.3},
    "scaled": {"scale": 0.3},
    "scale zero": {"scale": 0.0},
}


def attend(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    """Attention as the method computes it, at rates of 0."""
    state = ModulationState(True, stated={"*": SiteLayout(0)}, rates=torch.zeros(len(query)))
    state.running = True
    stand_in, function = (
        StandIn(nn.Identity(), "here", state, None, None),
        F.scaled_dot_product_attention,
    )
    return handle_attention(stand_in, function, query, key, value, dropout_p=0.1, **options)


@pytest.mark.parametrize("name", MASKS)
def test_attention_is_that_of_torch(name: str) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, n, 4) for n in (5, 7, 7))
    options = MASKS[name]
    if name == "per head":
        options["attn_mask"][..., 0] = True  # a row that sees nothing is undefined in torch
    expected = F.scaled_dot_product_attention(query, key, value, **options)
    torch.testing.assert_close(attend(query, key, value, **options), expected)


def test_a_row_that_sees_no_key_is_zero_and_has_a_finite_gradient() -> None:
    query = torch.randn(1, 2, 4, requires_grad=True)
    mask = torch.tensor([[True, False], [False, False]])
    out = attend(query, torch.randn(1, 2, 4), torch.randn(1, 2, 4), attn_mask=mask)
    assert out[0, 1].tolist() == [0.0] * 4
    out.square().sum().backward()
    assert query.grad.isfinite().all()


def test_attention_masks_and_average_weights_pass_through() -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Linear(CHANNELS, 8)
            self.attention = nn.MultiheadAttention(
                8, 2, dropout=0.2, batch_first=True, add_bias_kv=True, add_zero_attn=True
            )

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            h = self.embed(x)
            hidden = torch.zeros(x.shape[:2], dtype=torch.bool)
            hidden[:, -3:] = True
            seen = torch.ones(16, 16, dtype=torch.bool).triu(1)
            return self.attention(
                h, h, h, key_padding_mask=hidden, attn_mask=seen, average_attn_weights=False
            )

    torch.manual_seed(0)
    model = Masked()
    modulator = attached(model)
    with modulator.forced_rates(torch.zeros(6)):
        trained = model(windows())
    for one, other in zip(trained, model.eval()(windows()), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_evaluation_runs_without_interception() -> None:
    model = models.Functional()
    attached(model).checks_left = 0  # hooks see the verification too
    seen = []
    model.block.linear.register_forward_hook(
        lambda *_: seen.append(len(_get_current_function_mode_stack()))
    )
    model(windows())
    model.eval()(windows())
    assert seen == [1, 1, 0, 0]
    assert _get_current_function_mode_stack() == []


def test_an_instances_own_forward_is_kept_and_given_back() -> None:
    model = models.Functional()
    original = model.block.forward

    def patched(h: Tensor) -> Tensor:
        return original(h) * 2

    model.block.forward = patched
    expected = model.eval()(windows())
    modulator = attached(model.train())
    assert "block:dropout" in {site.name for site in modulator.sites}
    assert torch.equal(model.eval()(windows()), expected)
    sacm.detach(model)
    assert model.block.forward is patched


def test_ordinary_dropout_inside_modules_left_alone_stays_ordinary() -> None:
    """The function inside a skipped `nn.Dropout` is not taken for a functional site."""
    torch.manual_seed(0)
    model = models.Functional()
    model.head = nn.Sequential(nn.Dropout(0.5), model.head)
    modulator = attached(model, skip=["head.0"])
    assert sum("head" in site.name for site in modulator.sites) == 1
    with modulator.forced_rates(torch.zeros(6)):
        assert not torch.equal(model(windows()), model(windows()))


def test_functional_sites_need_to_be_asked_for() -> None:
    model = models.Functional()
    model.head = nn.Sequential(nn.Dropout(0.1), model.head)
    modulator = attached(model, coverage="modules", insert_after=["block"])
    assert [site.name for site in modulator.sites] == ["block", "head.0"]
    with modulator.forced_rates(torch.zeros(6)):
        assert not torch.equal(model(windows()), model(windows()))
