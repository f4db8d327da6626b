from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import sacm

learner = pytest.importorskip("fastai.learner", reason="needs fastai, which is in no extra")
import fastai.callback.progress  # noqa: E402, F401  # gives learners `no_bar`
from fastai.data.core import DataLoaders  # noqa: E402  # after the check
from fastai.data.load import DataLoader  # noqa: E402

from .series import cut_windows, load_series, small_network  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own
CHANNELS, LENGTH = 2, 16


def make_learner(model: nn.Module, folder: Path) -> Any:
    x = torch.from_numpy(cut_windows(175, LENGTH, CHANNELS))
    data = TensorDataset(x, x.mean(dim=(1, 2))[:, None])
    loaders = DataLoaders(DataLoader(data, bs=8), DataLoader(data, bs=8))
    return learner.Learner(loaders, model, loss_func=nn.functional.mse_loss, path=folder)


def test_learner_trains_saves_loads_resumes_and_repairs(tmp_path: Path) -> None:
    model = small_network(LENGTH, CHANNELS)
    modulator = sacm.attach(model, channels=CHANNELS)
    first = make_learner(model, tmp_path)
    with first.no_bar(), first.no_logging():
        first.fit(1, lr=1e-2)
        first.save("model")
    learnt = {key: value.clone() for key, value in model.state_dict().items()}
    assert not torch.equal(modulator.scorer.weight.detach(), torch.ones(CHANNELS))
    raw = small_network(LENGTH, CHANNELS)
    raw.load_state_dict(sacm.strip_state_dict(learnt))
    x = torch.from_numpy(cut_windows(40, LENGTH, CHANNELS))
    assert torch.equal(model.eval()(x), raw.eval()(x))

    again = small_network(LENGTH, CHANNELS)
    sacm.attach(again, channels=CHANNELS)
    second = make_learner(again, tmp_path)
    second.load("model")
    assert all(torch.equal(value, learnt[key]) for key, value in again.state_dict().items())
    with second.no_bar(), second.no_logging():
        second.fit(1, lr=1e-2)
    assert not torch.equal(
        again.state_dict()["sacm_modulator.scorer.weight"], learnt["sacm_modulator.scorer.weight"]
    )

    sacm.protect(again, sacm.Guard(window=LENGTH).fit(load_series(175, CHANNELS)))
    x[0, 3] = torch.nan
    with second.no_bar():
        predicted, _ = second.get_preds(dl=DataLoader(TensorDataset(x, x[:, 0, :1]), bs=8))
    assert torch.isfinite(predicted).all()
