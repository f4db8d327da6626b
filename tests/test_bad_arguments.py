"""Everything a caller can get wrong in the core answers with one sentence, a `ValueError`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import sacm
from sacm import RateMapper, SACMConfig, SiteLayout, SpectralScorer, theory
from tests.inject import models
from tests.inject.models import windows

X = windows()


def attach(model: nn.Module | None = None, **options: Any) -> sacm.CapacityModulator:
    return sacm.attach(models.MLP() if model is None else model, **{"channels": 3, **options})


def attached() -> tuple[nn.Module, sacm.CapacityModulator]:
    model = models.MLP()
    return model, attach(model, example_inputs=X)


def twice() -> None:
    model, _ = attached()
    attach(model)


def compiled_first() -> None:
    attach(nn.ModuleDict({"_orig_mod": models.MLP()}))


def forced(rates: Any) -> None:
    _, modulator = attached()
    with modulator.forced_rates(rates):
        pass


def train(x: Any, **options: Any) -> None:
    model = models.MLP()
    attach(model, **options)
    model(x)


def functional(**options: Any) -> None:
    attach(models.Functional(), coverage="all", example_inputs=X, **options)


ROWS: list[tuple[str, Callable[[], object], str]] = [
    # settings
    ("p_min above p_max", lambda: SACMConfig(p_min=0.6, p_max=0.5), "p_min=0.6 and p_max=0.5"),
    ("p_min equal to p_max", lambda: SACMConfig(p_min=0.5), "0 <= p_min < p_max < 1"),
    ("p_max of one", lambda: SACMConfig(p_max=1.0), "p_max=1.0"),
    ("negative p_min", lambda: SACMConfig(p_min=-0.1), "p_min=-0.1"),
    ("eps of zero", lambda: SACMConfig(eps=0), "eps must be positive"),
    ("alpha that is no number", lambda: SACMConfig(alpha=float("nan")), "alpha must be a finite"),
    ("gamma that is text", lambda: SACMConfig(gamma="1"), "gamma must be a finite number, got '1'"),
    ("unknown detrending", lambda: SACMConfig(detrend="cubic"), "'ols', 'endpoint', 'none'"),
    ("a switch that is no switch", lambda: SACMConfig(log_norm=1), "log_norm must be True or"),
    # scorer, mapper, mask
    ("no channels", lambda: SpectralScorer(0), "channels must be a whole number from 1 on, got 0"),
    ("channels as text", lambda: SpectralScorer("7"), "got '7'"),
    ("windows of two dimensions", lambda: SpectralScorer(3)(X[0]), "[B, L, C]"),
    ("no windows", lambda: SpectralScorer(3)(X[:0]), "non-empty"),
    ("windows with other channels", lambda: SpectralScorer(2)(X), "channels=2"),
    ("scores of two dimensions", lambda: RateMapper()(X[0]), "scores must be a non-empty [B]"),
    ("no scores", lambda: RateMapper()(X[0, 0, :0]), "got [0]"),
    ("rates for another batch", lambda: sacm.adaptive_dropout(X, torch.zeros(5)), "[5]"),
    ("rates of two dimensions", lambda: sacm.adaptive_dropout(X, torch.zeros(6, 1)), "[6, 1]"),
    ("nothing to drop", lambda: sacm.adaptive_dropout(torch.ones(()), torch.zeros(1)), "h [B, …]"),
    (
        "scorer settings as a dict",
        lambda: SpectralScorer(3, {"p_min": 0}),
        "a SACMConfig, got dict",
    ),
    ("mapper settings as a dict", lambda: RateMapper({}), "config must be a SACMConfig, got dict"),
    ("True channels", lambda: SpectralScorer(True), "whole number from 1 on, got True"),
    ("windows as an array", lambda: SpectralScorer(3)(X.numpy()), "windows must be a torch tensor"),
    (
        "scores as an array",
        lambda: RateMapper()(np.ones(3)),
        "scores must be a non-empty [B] torch",
    ),
    ("an array to drop", lambda: sacm.adaptive_dropout(X.numpy(), torch.zeros(6)), "h must be a t"),
    ("rates as a list", lambda: sacm.adaptive_dropout(X, [0.0] * 6), "rates must be a torch tenso"),
    ("rate above one", lambda: sacm.adaptive_dropout(X, torch.full((6,), 1.5)), "lie in [0, 1)"),
    ("negative rate", lambda: sacm.adaptive_dropout(X, torch.full((6,), -0.1)), "lie in [0, 1)"),
    # score_windows
    ("series settings as a dict", lambda: sacm.score_windows(np.ones(99), config={}), "SACMConfig"),
    ("True as window", lambda: sacm.score_windows(np.ones(99), window=True), "window must be"),
    ("a series too short", lambda: sacm.score_windows(np.ones(50)), "50 rows, fewer than one"),
    ("a cube", lambda: sacm.score_windows(np.ones((9, 9, 9))), "[T] or [T, C]"),
    ("no columns", lambda: sacm.score_windows(np.ones((200, 0))), "[200, 0]"),
    ("text", lambda: sacm.score_windows(np.array(["a"] * 200)), "real numbers, got an array of"),
    ("objects", lambda: sacm.score_windows(np.array([None] * 200)), "array of object"),
    ("complex", lambda: sacm.score_windows(np.ones(200) * 1j), "array of complex128"),
    ("window of zero", lambda: sacm.score_windows(np.ones(200), window=0), "window must be"),
    ("half a window", lambda: sacm.score_windows(np.ones(200), window=9.5), "whole number"),
    ("negative stride", lambda: sacm.score_windows(np.ones(200), stride=-1), "stride must be"),
    # attach
    ("no module", lambda: attach("model"), "attach needs an nn.Module, got str"),
    ("attached twice", twice, "MLP is already attached: detach it first"),
    ("nothing trainable", lambda: attach(models.MLP().requires_grad_(False)), "no trainable"),
    ("no parameters", lambda: attach(nn.Dropout(0.1)), "no trainable parameters"),
    ("compiled first", compiled_first, "attach to the model itself first"),
    ("parallel first", lambda: attach(nn.DataParallel(models.MLP())), "then wrap it in DataPar"),
    ("channels of zero", lambda: attach(channels=0), "channels must be a whole number"),
    ("wrong channels", lambda: attach(channels=4, example_inputs=X), "has 3 channels, but attach"),
    ("wrong layout", lambda: attach(window_layout="BCL", example_inputs=X), "has 16 channels"),
    ("unknown layout", lambda: attach(window_layout="LBC"), "'BLC' or 'BCL', got 'LBC'"),
    ("unknown coverage", lambda: attach(coverage="most"), "'modules' or 'all', got 'most'"),
    ("a flat window", lambda: attach(example_inputs=X[0]), "must have three dimensions"),
    ("example of another kind", lambda: attach(example_inputs=3), "must be a tensor, a tuple of"),
    (
        "example without window",
        lambda: attach(example_inputs={"y": X}),
        "there is no window at 'x'",
    ),
    ("argument out of range", lambda: attach(input_arg=5), "input_arg=5 is no argument of MLP.for"),
    ("negative argument", lambda: attach(input_arg=-1), "input_arg=-1 is no argument"),
    ("unknown argument", lambda: attach(input_arg="past"), "which takes x"),
    ("a function without tensor", lambda: train(X, input_arg=lambda a, k: None), "gave NoneType"),
    ("unknown site to skip", lambda: attach(skip=["encoder.*"]), "no dropout site matches"),
    ("skip as text", lambda: attach(skip="hidden.2"), "must be a list of names, got 'hid"),
    ("unknown host", lambda: attach(insert_after=["ffn"]), "insert_after: no module of the model"),
    ("host as text", lambda: attach(insert_after="head"), "insert_after must be a list"),
    ("unknown site", lambda: attach(site_layouts={"a": SiteLayout(0)}), "sites: hidden.2, second"),
    (
        "layout of another kind",
        lambda: attach(site_layouts={"hidden.2": 0}),
        "must map names to SiteLayout",
    ),
    ("settings as a dict", lambda: attach(config={"p_max": 0.4}), "a SACMConfig, got dict"),
    ("a scorer that is a number", lambda: attach(scorer=5), "scorer must be an nn.Module, got 5"),
    ("True as channels", lambda: attach(channels=True), "whole number from 1 on, got True"),
    ("skip of None", lambda: attach(skip=None), "skip must be a list of names, got None"),
    ("skip by number", lambda: attach(skip=[1]), "skip must be a list of names, got [1]"),
    (
        "host of None",
        lambda: attach(insert_after=None),
        "insert_after must be a list of names, got",
    ),
    (
        "layouts as a list",
        lambda: attach(site_layouts=[SiteLayout(0)]),
        "must map names to SiteLay",
    ),
    (
        "layouts by number",
        lambda: attach(site_layouts={1: SiteLayout(0)}),
        "must map names to SiteLay",
    ),
    ("an empty example", lambda: attach(example_inputs=X[:0]), "MLP: an empty batch cannot be"),
    ("lazy parameters", lambda: attach(nn.Sequential(nn.LazyLinear(4))), "has lazy parameters"),
    ("negative dimension", lambda: SiteLayout(-1), "dim >= 0 and fold >= 1, got dim=-1"),
    ("fold of zero", lambda: SiteLayout(0, 0), "fold=0"),
    (
        "functional skip",
        lambda: attach(skip=["a:dropout"]),
        "coverage='all' adds those of functions",
    ),
    ("functional layout", lambda: attach(site_layouts={"a:x": SiteLayout(0)}), "coverage='all'"),
    ("unknown functional skip", lambda: functional(skip=["a:*"]), "matches 'a:*'; sites: Functi"),
    (
        "unknown functional layout",
        lambda: functional(site_layouts={"a:x": SiteLayout(0)}),
        "site_layouts: no dropout site matches 'a:x'",
    ),
    # training
    ("a batch with other channels", lambda: train(torch.ones(4, 16, 5)), "has 5 channels"),
    ("a batch of two dimensions", lambda: train(torch.ones(4, 16)), "three dimensions (BLC)"),
    ("forced rate of one", lambda: forced(torch.tensor([0.1, 1.0])), "must lie in [0, 1)"),
    ("forced rate that is NaN", lambda: forced(torch.tensor([torch.nan])), "must lie in [0, 1)"),
    ("forced rates of whole numbers", lambda: forced(torch.zeros(6, dtype=int)), "of floats"),
    ("forced rates of two dimensions", lambda: forced(torch.zeros(6, 1)), "a [B] tensor"),
    # theory
    ("a rate of one", lambda: theory.regularization_strength(1.0), "must lie in [0, 1)"),
    ("a weight of zero", lambda: theory.surrogate_risk(1, 1, 0, 1), "c1 and c2 must be positive"),
    ("bounds upside down", lambda: theory.oracle_strength(1, 1, 1, 0.5, 0.1), "0.5 and 0.1"),
    ("no windows at all", lambda: theory.excess_risk(1, [], 1, 1, 0, 0.5), "non-empty vector"),
]


@pytest.mark.parametrize(("call", "says"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_one_clear_sentence(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        call()
    assert isinstance(caught.value, sacm.SACMError)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "…"))
    assert not re.search(r"[a-z\])]\. [A-Z]", message), "more than one sentence"


def test_any_integer_type_counts() -> None:
    series = np.random.default_rng(0).normal(size=(200, 3))
    found = sacm.score_windows(series, window=np.int64(96), stride=np.int32(10))
    assert np.array_equal(found, sacm.score_windows(series, window=96, stride=10))
    assert SpectralScorer(np.int64(3)).channels == 3
    assert attach(channels=np.int64(3), example_inputs=X).window.channels == 3


def test_a_refused_attach_changes_nothing() -> None:
    options: list[dict[str, Any]] = [
        {"channels": 4, "example_inputs": X},
        {"skip": ["nothing"]},
        {"insert_after": ["nothing"]},
        {"site_layouts": {"nothing": SiteLayout(0)}},
        {"coverage": "all", "example_inputs": X, "skip": ["nothing:dropout"]},
    ]
    for option in options:
        model = models.Functional()
        model.head = nn.Sequential(nn.Dropout(0.1), model.head)
        keys, before = list(model.state_dict()), [(m, type(m)) for m in model.modules()]
        with pytest.raises(ValueError):
            attach(model, **option)
        assert list(model.state_dict()) == keys
        assert [(m, type(m)) for m in model.modules()] == before
        assert not any("forward" in vars(m) or "sacm_site" in vars(m) for m in model.modules())
        assert not model._forward_pre_hooks
        attach(model, example_inputs=X)


def test_a_replica_of_data_parallel_is_refused() -> None:
    """What `nn.DataParallel` calls are shallow copies that share one state."""
    model, _ = attached()
    model._is_replica = True
    with pytest.raises(ValueError, match="use DistributedDataParallel"):
        model(X)
