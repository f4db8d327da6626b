"""Dropout of other kinds: alpha, native, whole rows (DropPath), recurrent layers, scripted."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

import sacm

from .forced_rates import check_every_site
from .models import CHANNELS, windows

RATES = torch.tensor([0.0, 0.1, 0.3, 0.5, 0.7, 0.9])
LIMIT = -1.7580993408473766  # of SELU


def attach(model: nn.Module, **options: Any) -> sacm.CapacityModulator:
    return sacm.attach(model, **{"channels": CHANNELS, "example_inputs": windows(), **options})


class Then(nn.Module):
    """Embeds windows to `[B, L, width]` and hands them to a last part, whose output it returns."""

    def __init__(self, last: Any, width: int = 64) -> None:
        super().__init__()
        self.embed, self.last = nn.Linear(CHANNELS, width), last

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.embed(x))


def assert_shares(kept: Tensor, rates: Tensor = RATES) -> None:
    """`kept` `[B, draws]` follows the keep probabilities, window by window."""
    spread = (rates * (1 - rates) / kept.shape[1]).sqrt()
    assert ((kept.double().mean(1) - (1 - rates)).abs() <= 4.5 * spread + 1e-3).all()


# --- alpha dropout ------------------------------------------------------------------------------


class FunctionalAlpha(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, h: Tensor) -> Tensor:
        return self.function(h, 0.2, self.training)


ALPHA = {
    "module": nn.AlphaDropout(0.2),
    "function": FunctionalAlpha(F.alpha_dropout),
    "torch function": FunctionalAlpha(torch.alpha_dropout),
    "in place": FunctionalAlpha(lambda h, p, train: torch.alpha_dropout_(h + 0, p, train)),
    "feature module": nn.FeatureAlphaDropout(0.2),
    "feature function": FunctionalAlpha(F.feature_alpha_dropout),
}


# --- native dropout -----------------------------------------------------------------------------


class Native(nn.Module):
    """Uses the mask that `torch.native_dropout` returns."""

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor] | Tensor:
        return torch.native_dropout(h, 0.2, True) if self.training else h


def test_native_dropout_returns_the_mask_of_each_windows_rate() -> None:
    torch.manual_seed(0)
    model, x = Then(Native()), windows(length=64)
    modulator = attach(model, coverage="all", example_inputs=x)
    assert [(s.name, s.adaptive) for s in modulator.sites] == [("last:native_dropout", True)]
    with modulator.forced_rates(RATES):
        out, mask = model(x)
    assert mask.dtype == torch.bool
    assert_shares(mask.flatten(1))
    expected = model.embed(x) * mask / (1 - RATES).view(-1, 1, 1)
    torch.testing.assert_close(out, expected)
    model(x)[0].square().sum().backward()
    assert modulator.mapper.gamma.grad != 0


# --- whole rows: DropPath and stochastic depth ---------------------------------------------------


class DropPath(nn.Module):
    """As in vision libraries: whole samples drop, the rest is scaled."""

    def __init__(self, drop_prob: float = 0.1, scale_by_keep: bool = True) -> None:
        super().__init__()
        self.drop_prob, self.scale_by_keep = drop_prob, scale_by_keep

    def forward(self, x: Tensor) -> Tensor:
        if self.drop_prob == 0.0 or not self.training:
            return x
        keep = 1 - self.drop_prob
        mask = x.new_empty((x.shape[0],) + (1,) * (x.dim() - 1)).bernoulli_(keep)
        return x * (mask.div_(keep) if self.scale_by_keep else mask)


class FloorDropPath(nn.Module):
    """The other common way to write it, with a rate that may be None."""

    def __init__(self, drop_prob: float | None = None) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, hidden_states: Tensor) -> Tensor:
        if not self.drop_prob or not self.training:
            return hidden_states
        keep = 1 - self.drop_prob
        shape = (hidden_states.shape[0],) + (1,) * (hidden_states.dim() - 1)
        return hidden_states.div(keep) * (keep + torch.rand(shape)).floor()


class StochasticDepth(nn.Module):
    """By row, or one decision for the whole batch."""

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0:
            return x
        size = [x.shape[0] if self.mode == "row" else 1] + [1] * (x.dim() - 1)
        return x * torch.empty(size).bernoulli_(1 - self.p).div_(1 - self.p)


class LockedDropout(nn.Module):
    """One mask for all time steps of a window."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        return (
            x
            * torch.bernoulli(torch.full((len(x), 1, x.shape[2]), 1 - self.rate))
            / (1 - self.rate)
        )


ROWS = {
    "drop path": lambda: DropPath(0.2),
    "drop path of rate 0": lambda: DropPath(0.0),
    "floor": lambda: FloorDropPath(0.2),
    "floor without a rate": FloorDropPath,
    "stochastic depth": lambda: StochasticDepth(0.2, "row"),
}


@pytest.mark.parametrize("coverage", ["modules", "all"])
@pytest.mark.parametrize("name", ROWS)
def test_drop_path_and_stochastic_depth_drop_samples_at_their_own_rates(
    name: str, coverage: str
) -> None:
    torch.manual_seed(0)
    model, x = Then(ROWS[name](), width=4), windows()
    modulator = attach(model, coverage=coverage)
    assert [(s.name, s.adaptive, str(s.layout)) for s in modulator.sites] == [
        ("last", True, "dim 0 = B")
    ]
    kept = []
    h = model.embed(x)
    with modulator.forced_rates(RATES):
        for _ in range(150):
            out = model(x)
            whole = out[:, 0, 0] != 0
            kept.append(whole)
            expected = torch.where(whole, 1 / (1 - RATES), 0.0).view(-1, 1, 1) * h
            torch.testing.assert_close(out, expected)
    assert_shares(torch.stack(kept, 1))
    assert "random" not in str(modulator.summary())
    model.eval()
    assert torch.equal(model(x), model.embed(x))
    sacm.detach(model)
    assert "forward" not in vars(model.last)


def test_drop_path_of_folded_channels_drops_row_by_row_at_the_windows_rate() -> None:
    class Folded(Then):
        def forward(self, x: Tensor) -> Tensor:
            rows = self.embed(x).transpose(1, 2).reshape(len(x) * 64, -1)
            return self.last(rows).view(len(x), 64, -1)

    torch.manual_seed(0)
    model, x = Folded(DropPath(0.1)), windows()
    modulator = attach(model)
    with modulator.forced_rates(RATES):
        outs = torch.stack([model(x) for _ in range(20)], 1)
    assert str(modulator.sites[0].layout) == "dim 0 = B*64"
    whole = outs[..., 0] != 0
    assert (whole.unsqueeze(-1) == (outs != 0)).all()
    assert_shares(whole.flatten(1))


def test_locked_dropout_shares_its_mask_over_time() -> None:
    torch.manual_seed(0)
    model, x = Then(LockedDropout(0.2)), windows()
    modulator = attach(model)
    with modulator.forced_rates(RATES):
        outs = torch.stack([model(x) for _ in range(20)], 1)
    kept = outs != 0
    assert (kept == kept[:, :, :1]).all()
    assert_shares(kept[:, :, 0].flatten(1))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: StochasticDepth(0.2, "batch"), "shared by all windows: one decision"),
        (lambda: DropPath(0.2, scale_by_keep=False), "not covered: a dropout class of its own"),
    ],
    ids=["one decision", "not rescaled"],
)
@pytest.mark.parametrize("coverage", ["modules", "all"])
def test_what_is_no_dropout_by_sample_stays_ordinary(make: Any, reason: str, coverage: str) -> None:
    torch.manual_seed(0)

    class Residual(Then):
        def forward(self, x: Tensor) -> Tensor:
            return self.embed(x) + super().forward(x)

    model = nn.Sequential(Residual(make()), nn.Dropout(0.1))
    modulator = attach(model, coverage=coverage)
    site = next(site for site in modulator.sites if site.name == "0.last")
    assert not site.adaptive
    assert site.reason.startswith(reason)
    with modulator.forced_rates(torch.zeros(6)):
        outs = [model(windows()) for _ in range(20)]
    assert any(not torch.equal(outs[0], out) for out in outs)


def test_a_recognised_class_can_be_skipped_copied_and_trained() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(Then(DropPath(0.5)), DropPath(0.2), nn.Linear(64, 2))
    modulator = attach(model, skip=["1"], coverage="all")
    assert {s.name: s.adaptive for s in modulator.sites} == {"0.last": True, "1": False}
    twin = copy.deepcopy(model)
    twin(windows()).square().sum().backward()
    assert twin.sacm_modulator.mapper.gamma.grad is not None
    assert modulator.mapper.gamma.grad is None
    assert vars(twin[0].last)["forward"].module is twin[0].last


# --- frozen parts -------------------------------------------------------------------------------


# --- recurrent networks -------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], packed: bool = False, **options: Any) -> None:
        super().__init__()
        self.packed = packed
        self.cell = kind(CHANNELS, 8, num_layers=3, dropout=0.2, **options)

    def forward(self, x: Tensor) -> tuple[Tensor, Any]:
        first = self.cell.batch_first
        x = x if first else x.transpose(0, 1)
        if not self.packed:
            out, state = self.cell(x)
            return (out if first else out.transpose(0, 1)), state
        lengths = torch.arange(x.shape[0 if first else 1]) % 5 + 10
        rows = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False)
        out, state = self.cell(rows)
        return pad_packed_sequence(out, batch_first=True)[0], state


RECURRENT: dict[str, Any] = {
    "lstm": lambda: Recurrent(nn.LSTM, batch_first=True),
    "gru": lambda: Recurrent(nn.GRU, batch_first=True),
    "rnn": lambda: Recurrent(nn.RNN, batch_first=True, nonlinearity="relu"),
    "time first": lambda: Recurrent(nn.LSTM),
    "both directions": lambda: Recurrent(nn.GRU, batch_first=True, bidirectional=True),
    "projected": lambda: Recurrent(nn.LSTM, batch_first=True, proj_size=4, bias=False),
    "packed": lambda: Recurrent(nn.LSTM, packed=True, batch_first=True, bidirectional=True),
    "packed gru": lambda: Recurrent(nn.GRU, packed=True),
}


def flatten(result: Any) -> list[Tensor]:
    out, state = result
    return [out, *(state if isinstance(state, tuple) else (state,))]


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
@pytest.mark.parametrize("name", RECURRENT)
def test_unrolled_layers_compute_what_the_fused_kernel_does(name: str) -> None:
    torch.manual_seed(0)
    model, x = RECURRENT[name](), windows()
    fused = flatten(model.eval()(x))
    modulator = attach(model.train(), coverage="all")
    assert [(s.name, s.adaptive) for s in modulator.sites] == [("cell", True)]
    with modulator.forced_rates(torch.zeros(6)):
        for one, other in zip(flatten(model(x)), fused, strict=True):
            torch.testing.assert_close(one, other)
    check_every_site(model, modulator, model, x)
    model(x)[0].square().sum().backward()
    assert modulator.mapper.gamma.grad != 0
    assert all(p.grad is not None for p in model.cell.parameters())
    assert "random" not in str(modulator.summary())
    for one, other in zip(flatten(model.eval()(x)), fused, strict=True):
        assert torch.equal(one, other)
    sacm.detach(model)
    assert "forward" not in vars(model.cell)


def test_unrolled_layers_take_a_starting_state() -> None:
    class Started(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTM(CHANNELS, 4, num_layers=2, dropout=0.5, batch_first=True)

        def forward(self, x: Tensor, hidden: Tensor) -> tuple[Tensor, Any]:
            states = hidden.transpose(0, 1).contiguous()
            return self.cell(x, (states, 2 * states))

    torch.manual_seed(0)
    model, x, hidden = Started(), windows(), torch.randn(6, 2, 4)
    fused = flatten(model.eval()(x, hidden))
    modulator = attach(model.train(), example_inputs=(x, hidden), coverage="all")
    with modulator.forced_rates(torch.zeros(6)):
        for one, other in zip(flatten(model(x, hidden)), fused, strict=True):
            torch.testing.assert_close(one, other)


# --- checkpointing ------------------------------------------------------------------------------


class Checkpointed(nn.Module):
    """A block with every other kind of dropout, re-run in the backward pass or not."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.embed, self.how = nn.Linear(CHANNELS, 8), how
        self.block = nn.Sequential(Then(nn.Dropout1d(0.1), 8), DropPath(0.1), LastOf(nn.LSTM))
        self.block[0].embed = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        if self.how == "plain":
            return self.block(h)
        return checkpoint(self.block, h, use_reentrant=self.how == "reentrant")


class LastOf(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.cell = kind(8, 8, num_layers=2, dropout=0.1, batch_first=True)

    def forward(self, h: Tensor) -> Tensor:
        return self.cell(h)[0]


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_checkpointing_of_both_kinds_gives_the_same_gradients() -> None:
    found = {}
    for how in ("plain", "non-reentrant", "reentrant"):
        torch.manual_seed(0)
        model = Checkpointed(how)
        modulator = attach(model, coverage="all")
        assert sum(site.adaptive for site in modulator.sites) == 3
        torch.manual_seed(1)
        model(windows()).square().mean().backward()
        found[how] = {name: p.grad for name, p in model.named_parameters()}
    assert found["plain"]["sacm_modulator.mapper.gamma"] != 0
    for how in ("non-reentrant", "reentrant"):
        for name, gradient in found["plain"].items():
            torch.testing.assert_close(found[how][name], gradient, atol=1e-7, rtol=1e-5)
