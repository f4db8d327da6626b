"""Activation checkpointing re-runs parts in the backward pass: same masks, same rates."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import sacm

from .models import CHANNELS, windows


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.attention = nn.MultiheadAttention(width, 2, dropout=0.1, batch_first=True)
        self.drop = nn.Dropout(0.1)

    def forward(self, h: Tensor) -> Tensor:
        h = h + self.drop(self.attention(h, h, h, need_weights=False)[0])
        return h + F.dropout(torch.relu(self.linear(h)), 0.1, self.training)


class Stack(nn.Module):
    """Blocks that may be checkpointed, with dropout before and after them."""

    def __init__(self, how: str | None, width: int = 8) -> None:
        super().__init__()
        self.embed = nn.Linear(CHANNELS, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))
        self.first, self.last = nn.Dropout(0.1), nn.Dropout(0.1)
        self.head = nn.Linear(width, 1)
        self.how = how

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        if self.how != "sites in blocks only":
            h = self.first(h)
        for block in self.blocks:
            if self.how is None:
                h = block(h)
            else:
                h = checkpoint(block, h, use_reentrant=self.how != "non-reentrant")
        return self.head(self.last(h))


def gradients(how: str | None, coverage: str, *, size: int = 6) -> dict[str, Tensor | None]:
    torch.manual_seed(0)
    model = Stack(how)
    with warnings.catch_warnings():
        # The probe runs without gradients, which reentrant checkpointing finds worth saying.
        warnings.filterwarnings("ignore", message="None of the inputs have requires_grad")
        modulator = sacm.attach(
            model, channels=CHANNELS, coverage=coverage, example_inputs=windows()
        )
    torch.manual_seed(1)
    loss = model(windows(size)).square().mean()
    rates = modulator.rates
    loss.backward()
    assert torch.equal(modulator.rates, rates)
    return {name: p.grad for name, p in model.named_parameters()} | {"loss": loss.detach()}


@pytest.mark.parametrize("size", [6, 700], ids=["small", "large"])
@pytest.mark.parametrize("coverage", ["modules", "all"])
@pytest.mark.parametrize("how", ["non-reentrant", "reentrant"])
def test_gradients_are_those_without_checkpointing(how: str, coverage: str, size: int) -> None:
    """Large enough, too, for the other generator of random words."""
    plain, again = (gradients(h, coverage, size=size) for h in (None, how))
    for name, gradient in plain.items():
        assert gradient is not None, name
        assert again[name] is not None, name
        torch.testing.assert_close(again[name], gradient, atol=1e-7, rtol=1e-5, msg=name)
    assert plain["sacm_modulator.mapper.gamma"] != 0


def test_a_whole_attached_model_may_be_checkpointed() -> None:
    found = []
    for whole in (False, True):
        torch.manual_seed(0)
        model = Stack(None)
        sacm.attach(model, channels=CHANNELS, coverage="all", example_inputs=windows())
        torch.manual_seed(1)
        x = windows()
        out = checkpoint(model, x, use_reentrant=False) if whole else model(x)
        out.square().mean().backward()
        found.append([p.grad for p in model.parameters()])
    for plain, again in zip(*found, strict=True):
        torch.testing.assert_close(again, plain)


def test_backward_may_run_twice_where_torch_allows_it() -> None:
    torch.manual_seed(0)
    model = Stack(None)
    modulator = sacm.attach(model, channels=CHANNELS, example_inputs=windows())
    loss = model(windows()).square().mean()
    loss.backward(retain_graph=True)
    once = modulator.mapper.gamma.grad.clone()
    loss.backward()
    torch.testing.assert_close(modulator.mapper.gamma.grad, 2 * once)
    parameters = list(modulator.parameters())
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, parameters)
