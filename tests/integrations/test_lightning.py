from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import sacm
from sacm.errors import ArgumentError
from sacm.integrations.lightning import SACMCallback

from .series import make_loader, small_network

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:lightning", "ignore::FutureWarning")

CHANNELS, LENGTH = 3, 16
loader = make_loader(LENGTH, CHANNELS)


class Regression(pl.LightningModule):
    """A network under its own name, called by the training step."""

    def __init__(self) -> None:
        super().__init__()
        self.network = small_network(LENGTH, CHANNELS)

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, y = batch
        return F.mse_loss(self.network(x), y)

    test_step = validation_step = training_step

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters())


class Itself(Regression):
    """The training step calls the LightningModule."""

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)

    def training_step(self, batch: Any, index: int) -> Tensor:
        x, y = batch
        return F.mse_loss(self(x), y)


class Early(Regression):
    """The optimizer is made before any callback is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.optimizer = torch.optim.Adam(self.parameters())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.optimizer


def trainer(folder: Path, *callbacks: pl.Callback, epochs: int = 1) -> pl.Trainer:
    return pl.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        callbacks=list(callbacks),
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


@pytest.mark.parametrize(("module", "target"), [(Regression, "network"), (Itself, "")])
def test_scalars_are_trained_and_rates_logged(
    module: type[Regression], target: str, tmp_path: Path
) -> None:
    callback, model = SACMCallback(channels=CHANNELS, target=target), module()
    fit = trainer(tmp_path, callback)
    fit.fit(model, loader)
    modulator = callback.modulator
    assert modulator is not None
    scalars = {name: value.detach() for name, value in modulator.named_parameters()}
    assert sum(value.numel() for value in scalars.values()) == 2 * CHANNELS + 2
    fresh = sacm.SpectralScorer(CHANNELS)
    assert not torch.equal(scalars["scorer.weight"], fresh.weight)
    assert 0.05 <= float(fit.callback_metrics["sacm/rate_mean"]) <= 0.5


def test_checkpoint_loads_into_a_fresh_module_with_the_callback(tmp_path: Path) -> None:
    first = trainer(tmp_path, SACMCallback(channels=CHANNELS, target="network"))
    first.fit(Regression(), loader)
    path = tmp_path / "model.ckpt"
    first.save_checkpoint(path)
    expected = first.test(dataloaders=loader, ckpt_path=str(path), verbose=False)

    fresh, callback = Regression(), SACMCallback(channels=CHANNELS, target="network")
    again = trainer(tmp_path, callback, epochs=2)
    assert again.test(fresh, loader, ckpt_path=str(path), verbose=False) == expected
    again.fit(fresh, loader, ckpt_path=str(path))
    assert again.current_epoch == 2
    assert callback.modulator is fresh.network.sacm_modulator


def test_raw_network_loads_the_checkpoint(tmp_path: Path) -> None:
    fit = trainer(tmp_path, SACMCallback(channels=CHANNELS, target="network"))
    model = Regression()
    fit.fit(model, loader)
    fit.save_checkpoint(tmp_path / "model.ckpt")
    weights = torch.load(tmp_path / "model.ckpt", weights_only=True)["state_dict"]
    raw = Regression()
    raw.load_state_dict(sacm.strip_state_dict(weights))
    x = torch.randn(4, LENGTH, CHANNELS)
    assert torch.equal(raw.network.eval()(x), model.network.eval()(x))


def test_optimizer_made_too_early_is_refused(tmp_path: Path) -> None:
    fit = trainer(tmp_path, SACMCallback(channels=CHANNELS, target="network"))
    with pytest.raises(ArgumentError, match=r"does not hold SACM's .*made before"):
        fit.fit(Early(), loader)


def test_unknown_target_is_named(tmp_path: Path) -> None:
    fit = trainer(tmp_path, SACMCallback(channels=CHANNELS, target="nettwork"))
    with pytest.raises(ArgumentError, match="no trainable module 'nettwork'; it has network"):
        fit.fit(Regression(), loader)


def test_module_that_no_step_calls_is_warned_about(tmp_path: Path) -> None:
    fit = trainer(tmp_path, SACMCallback(channels=CHANNELS))
    with pytest.warns(sacm.SACMWarning, match="outside a training forward of the attached model"):
        fit.fit(Regression(), loader, loader)


def test_protected_network_trains_and_answers_on_repaired_windows(tmp_path: Path) -> None:
    rows = torch.randn(400, CHANNELS, generator=torch.Generator().manual_seed(2))
    guard = sacm.Guard(window=LENGTH).fit(rows.numpy())
    model = Regression()
    sacm.protect(model.network, guard)
    trainer(tmp_path, SACMCallback(channels=CHANNELS, target="network")).fit(model, loader)
    broken = torch.randn(2, LENGTH, CHANNELS)
    broken[0, 5] = torch.nan
    assert torch.isfinite(model.network.eval()(broken)).all()
    assert not torch.isfinite(sacm.unprotect(model.network)(broken)).all()
