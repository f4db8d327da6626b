"""More small models of common kinds: what a batch has in common, parts of it, other callers.

Each is right, or refused with a sentence that is true.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import sacm
from sacm import LayoutError, SiteLayout

from .models import CHANNELS, windows


class OneSite(nn.Module):
    """Embeds, drops, and maps to two numbers."""

    def __init__(self, inputs: int = CHANNELS) -> None:
        super().__init__()
        self.embed, self.drop = nn.Linear(inputs, 16), nn.Dropout(0.1)
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.embed(x)))


def attach(model: nn.Module, **options: Any) -> sacm.CapacityModulator:
    torch.manual_seed(0)
    return sacm.attach(model, channels=CHANNELS, **options)


def train(model: nn.Module, *batches: Any) -> None:
    for batch in batches:
        model(*batch).square().mean().backward()


def several(count: int = 8, steps: int = 18) -> list[tuple[Tensor]]:
    """Batches for some steps, so that layouts are verified in mid-training too."""
    return [(windows(count, seed=seed),) for seed in range(steps)]


def assert_rows_drop_alone(modulator: sacm.CapacityModulator, model: Any, *args: Tensor) -> None:
    """A window's rate drops entries of its own rows of the activation, and of no others."""
    count = len(args[0])
    for window in range(count):
        rates = torch.zeros(count)
        rates[window] = 0.9
        dropped: list[Tensor] = []
        hook = model.drop.register_forward_hook(
            lambda _, given, out, into=dropped: into.append((out != given[0]).flatten(1).any(1))
        )
        with modulator.forced_rates(rates), torch.no_grad():
            model(*args)
        hook.remove()
        assert dropped[0].nonzero()[:, 0].tolist() == [window]


# --- what all windows of a batch have in common ---------------------------------------------------


class BatchMeanScale(OneSite):
    """Scales by the mean size of the batch."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / x.abs().mean())


class BatchStandardised(OneSite):
    """A batch normalisation by hand."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x - x.mean((0, 1))) / (x.std((0, 1)) + 1e-5))


class ScaledInTraining(OneSite):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x / x.abs().mean() if self.training else x)


class OwnScale(OneSite):
    """RevIN: every window by its own mean and spread."""

    def forward(self, x: Tensor) -> Tensor:
        mean, spread = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
        return super().forward((x - mean) / spread) * spread[..., :1] + mean[..., :1]


@pytest.mark.parametrize("make", [BatchMeanScale, BatchStandardised, ScaledInTraining, OwnScale])
def test_scales_from_the_batch_or_the_window_are_right(make: Any) -> None:
    model = make()
    modulator = attach(model)
    train(model, *several(), (windows(5),))
    assert modulator.sites[0].layout == SiteLayout(0)
    assert_rows_drop_alone(modulator, model, windows(8))


class ScaledByTheOthers(OneSite):
    """Windows without values get the mean scale of the batch; the scale is a feature too."""

    def __init__(self) -> None:
        super().__init__(2 * CHANNELS)

    def forward(self, x: Tensor, observed: Tensor) -> Tensor:
        count = observed.sum(1, keepdim=True)
        total = (x.abs() * observed).sum(1, keepdim=True)
        common = total.sum(0, keepdim=True) / count.sum(0, keepdim=True).clamp(min=1)
        scale = torch.where(count > 0, total / count.clamp(min=1), common)
        h = torch.cat([x * observed / scale, scale.log().expand_as(x)], dim=-1)
        return super().forward(h)


def partly_observed(*empty: int, seed: int = 0, count: int = 8) -> tuple[Tensor, Tensor]:
    x = windows(count, seed=seed)
    observed = torch.ones_like(x)
    observed[list(empty)] = 0
    return x * observed, observed


@pytest.mark.parametrize("first", [(), (0,), (1, 2)], ids=["none", "one", "two"])
def test_windows_without_values_are_right_from_the_start_and_in_mid_training(
    first: tuple[int, ...],
) -> None:
    model = ScaledByTheOthers()
    modulator = attach(model)
    later = [partly_observed(*((0, 1, 6) if s % 2 else (7,)), seed=s) for s in range(17)]
    train(model, partly_observed(*first), *later, partly_observed(0, count=3))
    assert modulator.sites[0].layout == SiteLayout(0)
    assert_rows_drop_alone(modulator, model, *partly_observed(5))


class SortedAndScaled(ScaledByTheOthers):
    """The same in the order of size."""

    def forward(self, x: Tensor, observed: Tensor) -> Tensor:
        order = x.abs().sum((1, 2)).argsort()
        return super().forward(x[order], observed[order])[order.argsort()]


class SwapsTwo(OneSite):
    """Puts two of the windows in each other's place once the batch is large."""

    def forward(self, x: Tensor) -> Tensor:
        order = torch.arange(len(x))
        if len(x) > 5:
            order[[2, 5]] = order[[5, 2]]
        return super().forward(x[order])[order]


class RepeatsTheFirst(OneSite):
    """Puts the first window in the place of the last."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(torch.cat([x[:-1], x[:1]]) if len(x) > 5 else x)


@pytest.mark.parametrize("make", [SortedAndScaled, SwapsTwo, RepeatsTheFirst])
def test_an_order_of_its_own_is_refused_also_beside_a_common_scale(make: Any) -> None:
    model = make()
    attach(model)
    x, observed = partly_observed(5)
    batches = [(x.flip(0), observed.flip(0))] if make is SortedAndScaled else several()
    with pytest.raises(LayoutError, match=r"drop \(Dropout\)"):
        train(model, *batches)


class AttendsAcrossTheBatch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.drop = nn.Linear(CHANNELS, 16), nn.Dropout(0.1)
        self.attention = nn.MultiheadAttention(16, 2)  # takes [L, B, D], and gets [B, L, D]

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        return self.drop(self.attention(h, h, h)[0])


class AddsTheWindowBefore(OneSite):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + 0.5 * torch.cat([torch.zeros_like(x[:1]), x[:-1]]))


class ComparesWindows(OneSite):
    """Drops similarities of all pairs of windows."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x).mean(1)
        return self.drop(h @ h.T)


@pytest.mark.parametrize("make", [AttendsAcrossTheBatch, AddsTheWindowBefore, ComparesWindows])
@pytest.mark.parametrize("coverage", ["modules", "all"])
def test_rows_that_mix_windows_are_refused(make: Any, coverage: str) -> None:
    model = make()
    attach(model, coverage=coverage)
    with pytest.raises(LayoutError, match="mixes the rows of the 3 probed windows"):
        train(model, (windows(8),))


# --- parts of a batch -----------------------------------------------------------------------------


class OneByOne(OneSite):
    """One window at a time; their length may divide by the number of probed windows."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([super(OneByOne, self).forward(window) for window in x])


class TwoAtOnce(OneSite):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([super(TwoAtOnce, self).forward(part) for part in x.split(2)])


class ByExpert(nn.Module):
    """Every window goes to one of two experts."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(CHANNELS, 2), nn.ModuleList([OneSite(), OneSite()])

    def forward(self, x: Tensor) -> Tensor:
        expert = self.gate(x.mean(1)).argmax(-1)
        out = x.new_zeros(*x.shape[:2], 2)
        for number, network in enumerate(self.experts):
            own = (expert == number).nonzero()[:, 0]
            if len(own):
                out = out.index_copy(0, own, network(x[own]))
        return out


@pytest.mark.parametrize(
    ("make", "length", "sentence"),
    [
        (OneByOne, 16, "has no dimension that holds the 3 probed windows"),
        (OneByOne, 15, "depends on some of the 3 probed windows and not on others"),
        (TwoAtOnce, 16, "has no dimension that holds the 3 probed windows"),
    ],
    ids=["one by one", "one by one, divisible", "two at once"],
)
def test_a_batch_taken_in_parts_is_refused(make: Any, length: int, sentence: str) -> None:
    model = make()
    attach(model)
    with pytest.raises(LayoutError, match=sentence):
        train(model, *((windows(8, length, seed=s),) for s in range(8)))


def test_windows_routed_by_their_values_drop_at_the_mean_rate_with_one_warning_a_site() -> None:
    model = ByExpert()
    modulator = attach(model)
    with pytest.warns(sacm.SACMWarning, match="mean rate") as caught:
        train(model, *((windows(8, seed=s),) for s in range(8)))
    names = [str(warning.message).partition(" ")[0] for warning in caught]
    assert sorted(names) == sorted({*names}), "once a site"
    assert modulator.mapper.gamma.grad.abs() > 0


class FixedBatch(OneSite):
    """Takes exactly eight windows: its table has a row for each."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(8, 1, 16))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.embed(x) + self.table))


class CarriesState(nn.Module):
    """Begins every batch with the last state of the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(CHANNELS, 8, batch_first=True)
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(8, 2)
        self.state: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        out, state = self.cell(x, self.state)
        self.state = state.detach()
        return self.head(self.drop(out))


@pytest.mark.parametrize("make", [FixedBatch, CarriesState])
def test_a_model_bound_to_its_batch_size_is_right(make: Any) -> None:
    model = make()
    modulator = attach(model)
    train(model, *several())
    assert modulator.sites[0].layout == SiteLayout(0)
    assert_rows_drop_alone(modulator, model, windows(8))
    assert "not verified" not in str(modulator.summary())


def test_a_state_that_is_there_before_attaching_is_kept() -> None:
    model = CarriesState()
    model(windows(8))
    before = model.state.clone()
    attach(model, example_inputs=windows(8))
    assert torch.equal(model.state, before)
    train(model, *several(8, 3))


# --- other callers of forward ---------------------------------------------------------------------


class Differentiates(OneSite):
    """Returns the gradient of an energy, as a score network does."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        energy = super().forward(x).square().sum()
        return torch.autograd.grad(energy, x, create_graph=True)[0]


def test_a_forward_that_differentiates_is_right() -> None:
    model = Differentiates()
    modulator = attach(model)
    train(model, *several(8, 5))
    assert modulator.mapper.gamma.grad != 0
    with modulator.forced_rates(torch.tensor([0.9, *[0.0] * 7])):
        changed = (model(windows(8)) != model.eval()(windows(8))).flatten(1).any(1)
    assert changed.tolist() == [True, *[False] * 7]


class Mapped(OneSite):
    def forward(self, x: Tensor) -> Tensor:
        return torch.func.vmap(super().forward, randomness="different")(x)


@pytest.mark.parametrize("lazy", [False, True])
def test_vmap_is_refused_and_can_be_skipped(lazy: bool) -> None:
    model = Mapped()

    def run() -> None:
        attach(model, example_inputs=None if lazy else windows(8))
        train(model, (windows(8),))

    with pytest.raises(LayoutError, match="inside a transform of torch"):
        run()
    sacm.detach(model)
    skipped = nn.Sequential(model, nn.Dropout(0.1))
    modulator = attach(skipped, skip=["0.drop"])
    train(skipped, (windows(8),))
    assert [(s.name, s.adaptive) for s in modulator.sites] == [("1", True), ("0.drop", False)]


class TakesShares(OneSite):
    def forward(self, x: Tensor) -> Tensor:
        if x.min() < 0 or x.max() > 1:
            raise ValueError("values must lie in [0, 1].")
        return super().forward(x)


def test_a_model_that_takes_no_disturbed_windows_is_refused_with_its_own_words() -> None:
    model = TakesShares()
    attach(model)
    with pytest.raises(sacm.ArgumentError, match=r"cannot be probed: .* ValueError: values must"):
        model(windows(8).sigmoid())
    with pytest.raises(ValueError, match=r"^values must lie"):  # its own error passes as it is
        model(windows(8))


class TakesSharesInTraining(TakesShares):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if self.training else OneSite.forward(self, x)


def test_layouts_that_cannot_be_verified_are_named_in_the_summary() -> None:
    model = TakesSharesInTraining()
    modulator = attach(model)
    train(model, (windows(8).sigmoid(),))
    last = str(modulator.summary()).splitlines()[-1]
    assert last == (
        "The layouts were not verified on a training batch: ValueError: values must lie in [0, 1]."
    )


def test_integer_windows_are_refused_with_a_true_sentence() -> None:
    model = nn.Sequential(nn.Embedding(50, 8), nn.Dropout(0.1))
    attach(model)
    with pytest.raises(sacm.ArgumentError, match="the windows are int64"):
        model(torch.randint(50, (8, 16, CHANNELS)))
