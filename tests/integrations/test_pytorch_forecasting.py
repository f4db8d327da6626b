from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import pandas as pd
import pytest
import torch

import sacm
from sacm.integrations.shared import repair_frame

forecasting = pytest.importorskip(
    "pytorch_forecasting", reason="needs the `integrations` extra: pytorch-forecasting"
)
from sacm.integrations.pytorch_forecasting import SACMCallback, locate_window  # noqa: E402  # after the check

from .series import load_series  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own


def dataset() -> Any:
    time = np.arange(200)
    values = load_series(200)[:, 0].astype(np.float64)
    values[50:60] = 40.0
    frame = pd.DataFrame({"step": time, "series": "a", "value": values})
    names = {"id_col": "series", "time_col": "step", "target_col": "value"}
    return forecasting.TimeSeriesDataSet(
        repair_frame(frame, mask_col="weight", **names),
        time_idx="step",
        target="value",
        group_ids=["series"],
        weight="weight",
        max_encoder_length=16,
        min_encoder_length=16,
        max_prediction_length=4,
        time_varying_known_reals=["step"],
        time_varying_unknown_reals=["value"],
    )


def model(data: Any) -> Any:
    torch.manual_seed(0)
    return forecasting.TemporalFusionTransformer.from_dataset(
        data, hidden_size=8, attention_head_size=1, dropout=0.2, log_interval=-1
    )


def trainer(folder: Path, *callbacks: Any, steps: int) -> pl.Trainer:
    return pl.Trainer(
        accelerator="cpu",
        max_steps=steps,
        callbacks=[*callbacks],
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def test_model_trains_saves_loads_and_resumes(tmp_path: Path) -> None:
    data = dataset()
    batches = data.to_dataloader(train=True, batch_size=8)
    network, callback = model(data), SACMCallback()
    first = trainer(tmp_path, callback, steps=20)
    first.fit(network, batches)
    learnt = network.sacm_modulator.scorer.weight.detach().clone()
    assert learnt.shape == (1,)
    assert not torch.equal(learnt, torch.ones(1))
    path = tmp_path / "model.ckpt"
    first.save_checkpoint(path)

    weights = torch.load(path, weights_only=False)["state_dict"]
    raw = model(data)
    raw.load_state_dict(sacm.strip_state_dict(weights))
    x, _ = next(iter(data.to_dataloader(train=False, batch_size=8)))
    with torch.no_grad():
        ours, theirs = network.eval()(x).prediction, raw.eval()(x).prediction
    assert torch.equal(ours, theirs)

    fresh = model(data)
    trainer(tmp_path, SACMCallback(), steps=22).fit(
        fresh, batches, ckpt_path=str(path), weights_only=False
    )
    assert not torch.equal(fresh.sacm_modulator.scorer.weight.detach(), learnt)
    assert abs(fresh.sacm_modulator.scorer.weight.detach() - learnt).max() < abs(learnt - 1).max()


def test_a_model_that_does_not_name_its_targets_is_refused() -> None:
    with pytest.raises(sacm.ArgumentError, match="Linear does not say where its targets are"):
        locate_window(torch.nn.Linear(1, 1))
