"""A matrix of small models of common kinds and ways to attach: each is right, or refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import sacm
from sacm import LayoutError, SiteLayout

from . import models
from .forced_rates import check_every_site
from .models import CHANNELS, LENGTH, windows

every_coverage = pytest.mark.parametrize("coverage", ["modules", "all"])
every_start = pytest.mark.parametrize("lazy", [False, True], ids=["example", "first batch"])


class OneSite(nn.Module):
    """Embeds, changes by `act`, drops, and maps to two numbers."""

    def __init__(self, act: Callable[[OneSite, Tensor], Tensor] = lambda _, h: h) -> None:
        super().__init__()
        self.embed, self.drop = nn.Linear(CHANNELS, 16), nn.Dropout(0.1)
        self.head, self.act = nn.Linear(16, 2), act

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.embed(self.act(self, x))))


def attach(model: nn.Module, x: Any = None, **options: Any) -> sacm.CapacityModulator:
    return sacm.attach(model, channels=CHANNELS, example_inputs=x, **options)


def train(model: nn.Module, *batches: Any) -> None:
    for batch in batches:
        out = model(*batch) if isinstance(batch, tuple) else model(batch)
        (out[0] if isinstance(out, tuple) else out).square().mean().backward()


def several(count: int = 8, steps: int = 5) -> list[Tensor]:
    """More batches than are verified."""
    return [windows(count, seed=seed) for seed in range(steps)]


# --- right ----------------------------------------------------------------------------------------


class FixedBatch(OneSite):
    """Takes exactly eight windows: its table has a row for each."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(8, 1, 16))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.embed(x) + self.table))


class CarriesState(OneSite):
    """Begins every batch with the last state of the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(16, 16, batch_first=True)
        self.state: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        out, state = self.cell(self.embed(x), self.state)
        self.state = state.detach()
        return self.head(self.drop(out))


class MonteCarloDropout(nn.Dropout):
    """A subclass of the user's own."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


def subclassed() -> nn.Module:
    model = OneSite()
    model.drop = MonteCarloDropout(0.1)
    return model


RIGHT: dict[str, Callable[[], nn.Module]] = {
    "mlp": models.MLP,
    "folded": models.BatchMajor,
    "folded the other way": models.BatchMinor,
    "encoder": lambda: models.Encoder(batch_first=True),
    "encoder, time first": lambda: models.Encoder(batch_first=False),
    "convolution": models.ConvNet,
    "own scale": lambda: OneSite(lambda _, x: x / (x.std(1, keepdim=True) + 1e-5)),
    "scale in training": lambda: OneSite(lambda m, x: x / x.abs().mean() if m.training else x),
    "subclass of dropout": subclassed,
}


@every_start
@every_coverage
@pytest.mark.parametrize("name", RIGHT)
def test_windows_drop_at_their_own_rates(name: str, coverage: Any, lazy: bool) -> None:
    torch.manual_seed(0)
    model = RIGHT[name]()
    modulator = attach(model, None if lazy else windows(), coverage=coverage)
    train(model, *several(steps=3))
    assert any(site.adaptive for site in modulator.sites)
    if name != "scale in training":  # whose windows touch each other
        check_every_site(model, modulator, model, windows())
    raw = RIGHT[name]()
    raw.load_state_dict(sacm.strip_state_dict(model.state_dict()))
    assert torch.equal(sacm.detach(model).eval()(windows()), raw.eval()(windows()))


@pytest.mark.parametrize(
    "make",
    [
        FixedBatch,
        CarriesState,
        lambda: OneSite(lambda _, x: x / x.abs().mean()),
        lambda: OneSite(lambda _, x: (x - x.mean((0, 1))) / (x.std((0, 1)) + 1e-5)),
    ],
    ids=["fixed batch", "state", "scale of the batch", "standardised"],
)
def test_rows_drop_alone_also_where_the_batch_counts(make: Any) -> None:
    torch.manual_seed(0)
    model = make()
    modulator = attach(model)
    train(model, *several())
    assert modulator.sites[0].layout == SiteLayout(0)
    assert "not verified" not in str(modulator.summary())
    for window in (0, 5):
        dropped: list[Tensor] = []
        hook = model.drop.register_forward_hook(
            lambda _, given, out, into=dropped: into.append((out != given[0]).flatten(1).any(1))
        )
        with modulator.forced_rates(0.9 * (torch.arange(8) == window)):
            model(windows(8))
        hook.remove()
        assert dropped[0].nonzero()[:, 0].tolist() == [window]


# --- refused, with a sentence that is true --------------------------------------------------------


def shuffle_in_training(model: nn.Module, x: Tensor) -> Tensor:
    return x[torch.randperm(len(x))] if model.training else x


def mix_in_training(model: nn.Module, x: Tensor) -> Tensor:
    return 0.7 * x + 0.3 * x[torch.randperm(len(x))] if model.training else x


class ComparesWindows(OneSite):
    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x).mean(1)
        return self.drop(h @ h.T)


class OneByOne(OneSite):
    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([super(OneByOne, self).forward(window) for window in x])


REFUSED: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "sorted": (
        lambda: OneSite(lambda _, x: x[x.abs().sum((1, 2)).argsort()]),
        "mixes the rows",
    ),
    "shuffled in training": (
        lambda: OneSite(shuffle_in_training),
        "mixes the rows",
    ),
    "mixup": (lambda: OneSite(mix_in_training), "mixes the rows"),
    "window before": (lambda: OneSite(lambda _, x: x + x.roll(1, 0)), "mixes the rows"),
    "compares": (ComparesWindows, "mixes the rows of the 8 probed windows"),
    "one by one": (OneByOne, "mixes the rows"),
}


@every_start
@every_coverage
@pytest.mark.parametrize("name", REFUSED)
def test_models_that_mix_windows_are_refused_on_the_first_batch(
    name: str, coverage: Any, lazy: bool
) -> None:
    torch.manual_seed(0)
    make, sentence = REFUSED[name]
    model = make()

    def begin() -> None:
        attach(model, None if lazy else windows(8), coverage=coverage)
        train(model, windows(8))

    with pytest.raises(LayoutError, match=rf"drop \(Dropout\).*(?:{sentence})"):
        begin()


def test_an_error_lists_all_sites_with_the_ways_out() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(ComparesWindows(), nn.Dropout(0.1))
    with pytest.raises(LayoutError) as caught:
        attach(model, windows(8))
    text = str(caught.value)
    assert text.startswith(
        "2 dropout site(s) of Sequential have no known layout:\n  0.drop (Dropout)"
    )
    assert "state it with site_layouts={'1': SiteLayout(dim=…, fold=…)}" in text
    assert text.endswith("To leave them as ordinary dropout: skip=['0.drop', '1']")
    modulator = attach(model, windows(8), skip=["0.drop"], site_layouts={"1": SiteLayout(0)})
    train(model, windows(8))
    assert {site.name: site.adaptive for site in modulator.sites} == {"1": True, "0.drop": False}


def test_a_stated_layout_that_does_not_fit_is_refused() -> None:
    with pytest.raises(LayoutError, match=r"does not hold 6 windows as stated \(dim 1 = B\)"):
        attach(OneSite(), windows(), site_layouts={"drop": SiteLayout(1)})


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_an_order_that_changes_is_refused_on_the_verified_batches(steps: int) -> None:
    torch.manual_seed(0)
    model = OneSite(shuffle_in_training)
    order = model.act
    model.act = lambda _, x: x
    attach(model, windows(8))
    train(model, *several(steps=steps))
    model.act = order
    if steps < 2:
        with pytest.raises(LayoutError, match="mixes the rows"):
            train(model, windows(8))
    else:
        train(model, windows(8))  # nothing ends a training after that


def test_a_shape_that_comes_later_drops_at_the_mean_rate_with_one_warning() -> None:
    torch.manual_seed(0)
    model = models.BatchMajor()
    model.head = nn.Identity()
    modulator = attach(model, windows())
    train(model, *several(6, steps=3))
    site = modulator.sites[0]
    site.layouts = [(site.layouts[0][0], SiteLayout(0, fold=CHANNELS + 1))]  # as if it had changed
    with pytest.warns(sacm.SACMWarning, match="drop at their mean rate") as caught:
        train(model, windows())
    assert len(caught) == 1
    modulator.mapper.gamma.grad = None
    train(model, windows())
    assert modulator.mapper.gamma.grad.abs() > 0


def test_models_that_cannot_be_probed_say_why() -> None:
    def take_shares(_: nn.Module, x: Tensor) -> Tensor:
        if x.min() < 0 or x.max() > 1:
            raise ValueError("values must lie in [0, 1].")
        return x

    model = OneSite(take_shares)
    attach(model)
    with pytest.raises(sacm.ArgumentError, match=r"cannot be probed: .* ValueError: values must"):
        model(windows(8).sigmoid())
    with pytest.raises(ValueError, match=r"^values must lie"):  # its own error passes as it is
        model(windows(8))
    tokens = nn.Sequential(nn.Embedding(50, 8), nn.Dropout(0.1))
    attach(tokens)
    with pytest.raises(sacm.ArgumentError, match="the windows are int64"):
        tokens(torch.randint(50, (8, 16, CHANNELS)))


# --- sites that stay ordinary ---------------------------------------------------------------------


class Beside(OneSite):
    """A second dropout beside the usual one, on something that is no window."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.second = kind, nn.Dropout(0.5)
        self.table = nn.Parameter(torch.randn(3, 16))

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "no effect":
            self.second(self.table.expand(len(x), -1, -1))
        elif self.kind == "empty":
            x = torch.cat([self.second(x[:, :0]), x], dim=1)
        elif self.kind == "shared by all windows":
            return self.head(self.drop(self.embed(x)) + self.second(self.table).mean(dim=0))
        return super().forward(x)


@every_start
@pytest.mark.parametrize("kind", ["no effect", "empty", "shared by all windows"])
def test_a_site_without_windows_stays_ordinary(kind: str, lazy: bool) -> None:
    torch.manual_seed(0)
    model = Beside(kind)
    modulator = attach(model, None if lazy else windows())
    train(model, windows())
    site = next(site for site in modulator.sites if site.name == "second")
    assert not site.adaptive
    assert site.reason.startswith("depends on no window")
    assert type(model.second) is nn.Dropout
    assert check_every_site(model, modulator, model, windows()) == {"drop"}


def test_what_is_random_beside_adaptive_sites_is_reported() -> None:
    class Noisy(nn.Module):
        def forward(self, h: Tensor) -> Tensor:
            return F.dropout(h, 0.2, self.training)

    model = nn.Sequential(OneSite(), Noisy())
    summary = attach(model, windows()).summary()
    assert "Also random in training: something that is not listed here" in summary
    sacm.detach(model)
    assert "random" not in str(attach(model, windows(), coverage="all").summary())


# --- arguments of other kinds ---------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Batch:
    x: Tensor
    marks: dict[str, Tensor]


class TakesInput(OneSite):
    def __init__(self, read: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.read = read

    def forward(self, batch: Any) -> Tensor:
        return super().forward(self.read(batch))


INPUTS: dict[str, tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]] = {
    "dict": (lambda x: {"past": {"x": x, "name": "a"}, "step": 3}, lambda b: b["past"]["x"]),
    "dataclass": (lambda x: Batch(x, {"level": torch.ones(len(x))}), lambda b: b.x),
}


@every_start
@pytest.mark.parametrize("name", INPUTS)
def test_windows_inside_other_arguments(name: str, lazy: bool) -> None:
    torch.manual_seed(0)
    make, read = INPUTS[name]
    model, x = TakesInput(read), windows()
    example = None if lazy else (make(x),)
    modulator = attach(model, example, input_arg=lambda args, kwargs: read(args[0]))
    model(make(x)).sum().backward()
    check_every_site(model, modulator, lambda w: model(make(w)), x)


# --- dropout of other kinds -----------------------------------------------------------------------


class DropPath(nn.Module):
    """As in other libraries: one mask entry for a row."""

    def forward(self, x: Tensor) -> Tensor:
        shape = (len(x), *(1,) * (x.dim() - 1))
        return x * torch.bernoulli(torch.full(shape, 0.8)) / 0.8 if self.training else x


@every_coverage
def test_a_dropout_class_of_another_library_stays_ordinary_and_is_named(coverage: Any) -> None:
    torch.manual_seed(0)
    modulator = attach(nn.Sequential(OneSite(), DropPath()), windows(), coverage=coverage)
    site = next(site for site in modulator.sites if site.name == "1")
    assert (site.adaptive, site.reason) == (False, "not covered: a dropout class of its own")


# --- recurrent networks ---------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.cell = kind(CHANNELS, 8, num_layers=3, dropout=0.2, **options)

    def forward(self, x: Tensor) -> tuple[Tensor, Any]:
        first = self.cell.batch_first
        x = x if first else x.transpose(0, 1)
        out, state = self.cell(x)
        return (out if first else out.transpose(0, 1)), state


RECURRENT: dict[str, Any] = {
    "lstm": lambda: Recurrent(nn.LSTM, batch_first=True),
    "rnn": lambda: Recurrent(nn.RNN, batch_first=True, nonlinearity="relu"),
    "time first": lambda: Recurrent(nn.LSTM),
    "both directions": lambda: Recurrent(nn.GRU, batch_first=True, bidirectional=True),
    "projected": lambda: Recurrent(nn.LSTM, batch_first=True, proj_size=4, bias=False),
}


def flatten(result: Any) -> list[Tensor]:
    out, state = result
    return [out, *(state if isinstance(state, tuple) else (state,))]


@pytest.mark.filterwarnings("ignore:LSTM with projections:UserWarning")
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_run_one_by_one_compute_what_the_fused_kernel_does(name: str) -> None:
    torch.manual_seed(0)
    model, x = RECURRENT[name](), windows(length=LENGTH)
    fused = flatten(model.eval()(x))
    modulator = attach(model.train(), x, coverage="all")
    assert [(s.name, s.adaptive) for s in modulator.sites] == [("cell", True)]
    with modulator.forced_rates(torch.zeros(6)):
        for unrolled, expected in zip(flatten(model(x)), fused, strict=True):
            torch.testing.assert_close(unrolled, expected)
    check_every_site(model, modulator, model, x)
    model(x)[0].square().sum().backward()
    assert modulator.mapper.gamma.grad != 0
    for evaluated, expected in zip(flatten(model.eval()(x)), fused, strict=True):
        assert torch.equal(evaluated, expected)


class Packs(OneSite):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(CHANNELS, CHANNELS, num_layers=2, dropout=0.2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, torch.full((len(x),), x.shape[1]), batch_first=True)
        return super().forward(pad_packed_sequence(self.cell(packed)[0], batch_first=True)[0])


def test_a_packed_sequence_stays_in_the_fused_kernel_and_the_summary_says_so() -> None:
    model = Packs()
    modulator = attach(model, windows(), coverage="all")
    assert {site.name: site.adaptive for site in modulator.sites} == {"drop": True, "cell": False}
    assert "not covered: packed or single sequences" in str(modulator.summary())
    model(windows()).sum().backward()
