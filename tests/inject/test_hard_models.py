"""Small models of common kinds that are easy to get wrong: right, or refused with a true reason."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import sacm
from sacm import LayoutError, SiteLayout

from .forced_rates import check_every_site
from .models import CHANNELS, LENGTH, windows


def attach(model: nn.Module, **options: Any) -> sacm.CapacityModulator:
    return sacm.attach(model, **{"channels": CHANNELS, "example_inputs": windows(), **options})


class OneSite(nn.Module):
    """Embeds, drops, and maps to two numbers."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embed, self.drop = nn.Linear(CHANNELS, width), nn.Dropout(0.1)
        self.head = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.embed(x)))


# --- the order of windows depends on data or on training mode ------------------------------------


class SortedByLength(OneSite):
    """Sorts the batch by length, longest first, and sorts the results back."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        order = lengths.argsort(descending=True, stable=True)
        return super().forward(x[order])[order.argsort()]


def of_lengths(*lengths: int) -> tuple[Tensor, Tensor]:
    return windows(len(lengths)), torch.tensor(lengths)


@pytest.mark.parametrize("coverage", ["modules", "all"])
@pytest.mark.parametrize("lazy", [False, True])
def test_sorted_by_length_is_refused_although_the_first_windows_are_in_order(
    coverage: str, lazy: bool
) -> None:
    torch.manual_seed(0)
    model = SortedByLength()
    example = None if lazy else of_lengths(16, 14, 12, 10)
    attach(model, example_inputs=example, coverage=coverage)
    with pytest.raises(LayoutError, match=r"drop \(Dropout\).* does not follow its layout.*sorts"):
        model(*of_lengths(16, 12, 10, 15, 9, 14, 8, 13))


class ShuffledInTraining(OneSite):
    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        order = torch.randperm(len(x))
        return super().forward(x[order])[order.argsort()]


class Mixup(OneSite):
    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            share = 0.5 + 0.3 * torch.rand(())
            x = share * x + (1 - share) * x[torch.randperm(len(x))]
        return super().forward(x)


@pytest.mark.parametrize("make", [ShuffledInTraining, Mixup])
@pytest.mark.parametrize("coverage", ["modules", "all"])
@pytest.mark.parametrize("lazy", [False, True])
def test_shuffled_in_training_and_mixup_are_refused(
    make: type[nn.Module], coverage: str, lazy: bool
) -> None:
    torch.manual_seed(0)
    model = make()

    def train() -> None:
        attach(model, example_inputs=None if lazy else windows(8), coverage=coverage)
        model(windows(8))

    with pytest.raises(LayoutError, match=r"drop \(Dropout\)"):
        train()


def test_site_layouts_and_skip_lead_out_of_a_refusal() -> None:
    stated = ShuffledInTraining()
    attach(stated, site_layouts={"drop": SiteLayout(0)})
    stated(windows(8)).sum().backward()
    skipped = nn.Sequential(ShuffledInTraining(), nn.Dropout(0.1))
    modulator = attach(skipped, skip=["0.drop"])
    skipped(windows(8)).sum().backward()
    assert {site.name: site.adaptive for site in modulator.sites} == {"1": True, "0.drop": False}


def test_verification_leaves_random_numbers_and_statistics_alone() -> None:
    outputs = []
    for lazy in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(OneSite(), nn.BatchNorm1d(LENGTH))
        attach(model, example_inputs=None if lazy else windows())
        torch.manual_seed(1)
        for seed in range(6):
            out = model(windows(8, seed=seed))
        outputs.append((out, model[1].running_mean.clone(), torch.get_rng_state()))
    for one, other in zip(*outputs, strict=True):
        assert torch.equal(one, other)


# --- other random operations --------------------------------------------------------------------


def drop_half(h: Tensor, training: bool) -> Tensor:
    return F.dropout(h, 0.5, training)


def script(part: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(part)


scripted_dropout = script(drop_half)


def test_a_model_without_other_randomness_says_nothing_of_it() -> None:
    assert "random" not in str(attach(OneSite()).summary())


# --- the first batch, frozen parts, folds -------------------------------------------------------


def test_first_batch_all_runs_with_one_dropout_left_ordinary() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(CHANNELS, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.1))
    modulator = attach(model, coverage="all", example_inputs=None, skip=["1"])
    model(windows()).sum().backward()
    model(windows()).sum().backward()
    assert {site.name: site.adaptive for site in modulator.sites} == {"3": True, "1": False}


# --- classes of the user's own ------------------------------------------------------------------


class MonteCarloDropout(nn.Dropout):
    """Drops in evaluation too, on request."""

    sampling = False

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training or self.sampling, self.inplace)


class BernoulliDropout(nn.Dropout):
    def forward(self, input: Tensor) -> Tensor:
        return (
            input * torch.bernoulli(torch.full_like(input, 1 - self.p)) if self.training else input
        )


class SameDropout(nn.Dropout2d):
    """Adds nothing."""


@pytest.mark.parametrize("coverage", ["modules", "all"])
@pytest.mark.parametrize("lazy", [False, True])
def test_subclass_of_dropout_is_adaptive(coverage: str, lazy: bool) -> None:
    torch.manual_seed(0)
    model, x = OneSite(), windows()
    model.drop = MonteCarloDropout(0.1)
    modulator = attach(model, coverage=coverage, example_inputs=None if lazy else x)
    model(x).sum().backward()
    assert [(s.name, s.kind, s.adaptive) for s in modulator.sites] == [
        ("drop", "MonteCarloDropout", True)
    ]
    check_every_site(model, modulator, model, x)
    model.eval()
    model.drop.sampling = True
    assert not torch.equal(model(x), model(x)), "its own evaluation stays"
    sacm.detach(model)
    assert "forward" not in vars(model.drop)


def test_subclass_can_be_skipped_and_one_that_drops_by_other_means_is_listed() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(CHANNELS, 8), MonteCarloDropout(0.1), BernoulliDropout(0.1), nn.Dropout(0.1)
    )
    modulator = attach(model, skip=["1"])
    found = {site.name: (site.adaptive, site.reason) for site in modulator.sites}
    assert found["1"] == (False, "skipped on request: ordinary dropout")
    assert found["2"] == (False, "not covered: a class that drops in a way of its own")
    assert found["3"][0]
    with modulator.forced_rates(torch.zeros(6)):
        assert not torch.equal(model(windows()), model(windows()))


def test_subclass_that_drops_feature_maps() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Unflatten(1, (LENGTH, 1)), SameDropout(0.1), nn.Linear(CHANNELS, 4))
    modulator = attach(model)
    assert [(s.name, s.layout) for s in modulator.sites] == [("1", SiteLayout(0))]
    model(windows()).sum().backward()


# --- sites without a window of their own --------------------------------------------------------


class NoEffect(OneSite):
    """What one dropout gives is thrown away."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.unused = nn.Parameter(torch.randn(5, 8)), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        self.unused(self.table.expand(len(x), -1, -1))
        return super().forward(x)


class EmptyActivation(OneSite):
    def __init__(self) -> None:
        super().__init__()
        self.empty = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        nothing = self.empty(x[:, :0])
        return super().forward(torch.cat([nothing, x], dim=1))


class SharedByAll(OneSite):
    """A table without a batch dimension; as many rows as the probe has windows."""

    def __init__(self, rows: int = 3) -> None:
        super().__init__()
        self.table, self.shared = nn.Parameter(torch.randn(rows, 16)), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        table = self.shared(self.table)
        return self.head(self.drop(self.embed(x)) + table.mean(dim=0))


@pytest.mark.parametrize(
    ("make", "name", "reason"),
    [
        (NoEffect, "unused", "no effect: depends on no window and changes nothing"),
        (EmptyActivation, "empty", "empty: its activation has no entries"),
        (SharedByAll, "shared", "shared by all windows"),
        (lambda: SharedByAll(4), "shared", "shared by all windows"),
    ],
    ids=["no_effect", "empty_activation", "shared_by_all", "shared_by_all of four rows"],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_no_effect_empty_activation_and_shared_by_all_stay_ordinary(
    make: Any, name: str, reason: str, lazy: bool
) -> None:
    torch.manual_seed(0)
    model = make()
    modulator = attach(model, example_inputs=None if lazy else windows())
    model(windows()).sum().backward()
    site = next(site for site in modulator.sites if site.name == name)
    assert not site.adaptive
    assert site.reason.startswith(reason)
    assert type(model.get_submodule(name)) is nn.Dropout
    assert check_every_site(model, modulator, model, windows()) == {"drop"}


# --- scripted children, own calls, inputs of other kinds, rate 0 --------------------------------


class ListInput(OneSite):
    """Takes a list with one tensor `[L, C]` for each window."""

    def forward(self, xs: list[Tensor]) -> Tensor:
        return super().forward(torch.stack(xs))


@pytest.mark.parametrize("lazy", [False, True])
def test_list_input(lazy: bool) -> None:
    torch.manual_seed(0)
    model, x = ListInput(), windows()
    modulator = attach(
        model,
        input_arg=lambda args, kwargs: torch.stack(args[0]),
        example_inputs=None if lazy else (list(x),),
    )
    model(list(x)).sum().backward()
    assert modulator.sites[0].layout == SiteLayout(0)
    check_every_site(model, modulator, lambda w: model(list(w)), x)


@dataclasses.dataclass(frozen=True)
class Batch:
    x: Tensor
    marks: dict[str, Tensor]


class DataclassInput(OneSite):
    def forward(self, batch: Batch) -> Tensor:
        return super().forward(batch.x + batch.marks["level"][:, None, None])


@pytest.mark.parametrize("lazy", [False, True])
def test_dataclass_input(lazy: bool) -> None:
    torch.manual_seed(0)
    model, x = DataclassInput(), windows()
    modulator = attach(
        model,
        input_arg=lambda args, kwargs: args[0].x,
        example_inputs=None if lazy else (Batch(x, {"level": torch.rand(6)}),),
    )
    model(Batch(x, {"level": torch.rand(6)})).sum().backward()
    check_every_site(model, modulator, lambda w: model(Batch(w, {"level": torch.ones(6)})), x)


def test_a_window_hidden_in_an_object_is_refused_with_a_true_sentence() -> None:
    class Holder:
        def __init__(self, x: Tensor) -> None:
            self.x = x

    class Hidden(OneSite):
        def forward(self, holder: Holder) -> Tensor:
            return super().forward(holder.x)

    with pytest.raises(sacm.ArgumentError, match="in no tensor of the arguments"):
        attach(
            Hidden(),
            input_arg=lambda args, kwargs: args[0].x,
            example_inputs=(Holder(windows()),),
        )


class RateZero(nn.Module):
    """Dropout of rate 0 in three ways."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.drop = nn.Linear(CHANNELS, 16), nn.Dropout(0.0)

    def forward(self, x: Tensor) -> Tensor:
        h = F.dropout(self.drop(self.embed(x)), 0.0, self.training)
        return F.scaled_dot_product_attention(h, h, h, dropout_p=0.0)


def test_rate_zero_is_adaptive_and_attention_without_dropout_is_listed() -> None:
    modulator = attach(RateZero(), coverage="all")
    found = {site.name: site.adaptive for site in modulator.sites}
    assert found == {
        "drop": True,
        "RateZero:dropout": True,
        "RateZero:attention_without_dropout": False,
    }
    assert "rate 0: attention without dropout stays as it is" in str(modulator.summary())


def test_a_model_found_to_have_no_dropout_on_its_first_batch_trains_without_idle_gradients() -> (
    None
):
    model = nn.Sequential(nn.Linear(CHANNELS, 8), nn.Linear(8, 2))
    modulator = attach(model, coverage="all", example_inputs=None)
    with pytest.warns(sacm.SACMWarning, match="has no dropout to make adaptive"):
        model(windows()).sum().backward()
    trained = [p for p in model.parameters() if p.requires_grad]
    assert all(p.grad is not None for p in trained)
    assert len(trained) == 4
    assert not any(p.requires_grad for p in modulator.parameters())


class DictInput(OneSite):
    """Takes one dict with everything."""

    def forward(self, batch: dict[str, Any]) -> Tensor:
        return super().forward(batch["past"]["x"] + batch["level"][:, None, None])


@pytest.mark.parametrize("lazy", [False, True])
def test_dict_input(lazy: bool) -> None:
    def batch(x: Tensor) -> dict[str, Any]:
        return {"past": {"x": x, "name": "series"}, "level": torch.ones(len(x)), "step": 3}

    torch.manual_seed(0)
    model, x = DictInput(), windows()
    modulator = attach(
        model,
        input_arg=lambda args, kwargs: args[0]["past"]["x"],
        example_inputs=None if lazy else (batch(x),),
    )
    model(batch(x)).sum().backward()
    check_every_site(model, modulator, lambda w: model(batch(w)), x)
